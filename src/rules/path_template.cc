#include "rules/path_template.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace sluice::rules {
namespace {

bool is_name(std::string_view text) noexcept {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '-';
  };
  return !text.empty() && std::ranges::all_of(text, is_part);
}

Parsed<PathSegment> parse_segment(std::string_view text) {
  using Kind = PathSegment::Kind;
  if (text == "**") return PathSegment{.kind = Kind::rest, .text = {}};
  if (text == "*") return PathSegment{.kind = Kind::any, .text = {}};
  if (text.starts_with('{') && text.ends_with('}')) {
    const std::string_view name = text.substr(1, text.size() - 2);
    if (is_name(name)) return PathSegment{.kind = Kind::parameter, .text = std::string{name}};
    return mistake(fmt::format("{} is no name for a path parameter", quoted(name)),
                   "use letters, digits, '_' and '-'");
  }
  if (text.find_first_of("*{}") != std::string_view::npos) {
    return mistake(fmt::format("the path segment {} mixes text and a wildcard", quoted(text)),
                   "a segment is text, '*', '**' or '{name}'");
  }
  if (text.find_first_of("?#") != std::string_view::npos) {
    return mistake(fmt::format("the path segment {} has a query or a fragment", quoted(text)),
                   "match those by 'query'");
  }
  return PathSegment{.kind = Kind::literal, .text = std::string{text}};
}

// What is wrong with a segment after those before it.
std::optional<Diagnostic> misplaced(const std::vector<PathSegment>& before,
                                    const PathSegment& segment) {
  using Kind = PathSegment::Kind;
  if (!before.empty() && before.back().kind == Kind::rest) {
    return Diagnostic{"'**' is not the last segment", "use '*' for one segment"};
  }
  if (segment.kind != Kind::parameter) return std::nullopt;
  if (std::ranges::find(before, segment) != before.end()) {
    return Diagnostic{fmt::format("the path parameter '{}' occurs twice", segment.text),
                      "give each a name of its own"};
  }
  if (std::ranges::count(before, Kind::parameter, &PathSegment::kind) ==
      static_cast<std::ptrdiff_t>(kPathParametersMax)) {
    return Diagnostic{"the path has too many parameters",
                      fmt::format("name at most {}; '*' needs no name", kPathParametersMax)};
  }
  return std::nullopt;
}

}  // namespace

Parsed<PathTemplate> PathTemplate::parse(std::string_view text) {
  if (!text.starts_with('/')) {
    return mistake(fmt::format("the path {} does not begin with '/'", quoted(text)),
                   fmt::format("write {}", quoted("/" + std::string{text})));
  }
  PathTemplate result;
  result.text_ = text;
  for (PathWalker walker{text}; !walker.done();) {
    const std::string_view written = walker.next();
    if (written.empty()) {
      return mistake(fmt::format("the path {} has an empty segment", quoted(text)),
                     "requests' paths have none either: '//' counts as '/'");
    }
    if (written == "." || written == "..") {
      return mistake(fmt::format("the path {} has a segment {}", quoted(text), quoted(written)),
                     "write the path that remains when such segments are resolved");
    }
    Parsed<PathSegment> segment = parse_segment(written);
    if (!segment) return tl::unexpected(std::move(segment.error()));
    if (auto problem = misplaced(result.segments_, *segment)) {
      return mistake(fmt::format("in the path {}: {}", quoted(text), problem->message),
                     problem->remedy);
    }
    if (segment->kind == PathSegment::Kind::literal) ++result.literals_;
    result.segments_.push_back(*std::move(segment));
  }
  return result;
}

int PathTemplate::parameter(std::string_view name) const noexcept {
  int number = 0;
  for (const PathSegment& segment : segments_) {
    if (segment.kind != PathSegment::Kind::parameter) continue;
    if (segment.text == name) return number;
    ++number;
  }
  return -1;
}

bool PathTemplate::matches(std::string_view path, PathParameters& values) const noexcept {
  PathWalker walker{path};
  std::size_t captured = 0;
  for (const PathSegment& segment : segments_) {
    if (segment.kind == PathSegment::Kind::rest) return true;
    if (walker.done()) return false;
    const std::string_view actual = walker.next();
    if (segment.kind == PathSegment::Kind::literal && actual != segment.text) return false;
    if (segment.kind == PathSegment::Kind::parameter) values[captured++] = actual;
  }
  return walker.done();
}

int compare_specificity(const PathTemplate& a, const PathTemplate& b) noexcept {
  if (a.literals() != b.literals()) return a.literals() > b.literals() ? 1 : -1;
  const std::size_t common = std::min(a.segments().size(), b.segments().size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto [mine, theirs] = std::pair{a.segments()[i].kind, b.segments()[i].kind};
    if (mine != theirs) return mine > theirs ? 1 : -1;
  }
  if (a.segments().size() == b.segments().size()) return 0;
  // Of /a/* and /a/*/*, the longer one says more; of /a and /a/**, the shorter.
  const bool a_is_longer = a.segments().size() > b.segments().size();
  const PathTemplate& longer = a_is_longer ? a : b;
  const bool says_more = longer.segments()[common].kind != PathSegment::Kind::rest;
  return a_is_longer == says_more ? 1 : -1;
}

}  // namespace sluice::rules
