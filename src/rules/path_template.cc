#include "rules/path_template.h"

#include "base/characters.h"
#include "base/text.h"
#include "identity/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

namespace sluice::rules {
namespace {

constexpr std::size_t kLongestPath = 2048;
constexpr std::size_t kMostSegments = 64;

bool is_name_character(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_parameter_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 64 && !is_digit(name.front()) &&
         std::all_of(name.begin(), name.end(), is_name_character);
}

bool has_broken_escape(std::string_view segment) noexcept {
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] != '%') continue;
    if (!decode_percent(segment.substr(i))) return true;
  }
  return false;
}

// Paths of requests are normalised, so templates have to be.
std::string as_in_requests(std::string_view segment) {
  std::array<char, identity::kPathScratchBytes> scratch;
  const std::string path = "/" + std::string{segment};  // the target points into it
  const identity::Target target = identity::normalise_target(path, {}, scratch);
  return target.ok() ? std::string{target.route().substr(1)} : std::string{segment};
}

std::string suggested_path(std::string_view text);

// /users/:id/:file as /users/{id}/{file}.
std::string with_braces(std::string_view path) {
  std::string written;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    const bool is_parameter = segment.starts_with(':') && is_parameter_name(segment.substr(1));
    written +=
        is_parameter ? fmt::format("/{{{}}}", segment.substr(1)) : fmt::format("/{}", segment);
  }
  return written;
}

Parsed<PathSegment> parse_parameter(std::string_view segment, std::string_view whole) {
  const std::string_view name = segment.substr(1, segment.size() - 2);
  if (!is_parameter_name(name)) {
    return mistake(
        fmt::format("{} in {} is no name of a parameter", quoted(segment), quoted(whole)),
        "use letters, digits and _, as in {user_id}");
  }
  return PathSegment{PathSegment::Kind::parameter, std::string{name}};
}

Parsed<PathSegment> parse_literal(std::string_view segment, std::string_view whole) {
  if (segment == "." || segment == "..") {
    return mistake(fmt::format("{} has a segment {}", quoted(whole), quoted(segment)),
                   "write the path that it leads to");
  }
  if (segment.starts_with(':') && is_parameter_name(segment.substr(1))) {
    const std::string written = with_braces(whole);
    return mistake(fmt::format("{} in {} would be taken literally", quoted(segment), quoted(whole)),
                   parse_path_template(written) ? fmt::format("write {}", written)
                                                : fmt::format("write {{{}}}", segment.substr(1)));
  }
  if (segment.find_first_of("{}*") != std::string_view::npos) {
    const std::string suggested = (segment == ".*" || segment == "(.*)") && whole.ends_with(segment)
                                      ? suggested_path(whole)
                                      : "";
    return mistake(fmt::format("{} in {} is only partly a pattern", quoted(segment), quoted(whole)),
                   suggested.empty() ? std::string{"use *, ** or {name} for whole segments"}
                                     : fmt::format("write {}", suggested));
  }
  if (has_broken_escape(segment)) {
    return mistake(
        fmt::format("a '%' in {} is not followed by two hexadecimal digits", quoted(whole)),
        "write %25 for a percent sign");
  }
  if (!segment.empty() && as_in_requests(segment).empty()) {
    return mistake(fmt::format("{} in {} stands for dots", quoted(segment), quoted(whole)),
                   "write the path that it leads to");
  }
  return PathSegment{PathSegment::Kind::literal, std::string{segment}};
}

Parsed<PathSegment> parse_segment(std::string_view segment, std::string_view whole) {
  if (segment == "*") return PathSegment{PathSegment::Kind::any, {}};
  if (segment == "**") return PathSegment{PathSegment::Kind::rest, {}};
  if (segment.size() >= 2 && segment.front() == '{' && segment.back() == '}') {
    return parse_parameter(segment, whole);
  }
  return parse_literal(segment, whole);
}

// The remedy for a path that is wrong as a whole, before it is split into segments.
std::string_view remedy_of_characters(std::string_view text) noexcept {
  if (text.find('?') != std::string_view::npos) return "match the query by 'query'";
  if (text.find('#') != std::string_view::npos)
    return "leave out the fragment, which is never sent";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) return "write %20 for a blank";
  }
  return {};
}

// A path as it stands behind `location` in a file of nginx.
struct Location {
  enum class Kind : std::uint8_t { none, regex, prefix, exact };
  Kind kind = Kind::none;
  std::string_view path;  // without the modifier
};

Location location_in(std::string_view text) noexcept {
  using Kind = Location::Kind;
  const auto behind = [text](std::string_view modifier) {
    return text.substr(std::min(text.find_first_not_of(' ', modifier.size()), text.size()));
  };
  if (text.starts_with("~*")) return {.kind = Kind::regex, .path = behind("~*")};
  if (text.starts_with('~')) return {.kind = Kind::regex, .path = behind("~")};
  if (text.starts_with("^~")) return {.kind = Kind::prefix, .path = behind("^~")};
  if (text.starts_with('=')) return {.kind = Kind::exact, .path = behind("=")};
  if (text.starts_with('^')) return {.kind = Kind::regex, .path = text};
  return {.kind = Kind::none, .path = text};
}

// The template that was most likely meant; empty: there is none.
std::string suggested_path(std::string_view text) {
  if (text == "*" || text == "**") return "/**";
  using Kind = Location::Kind;
  const Location location = location_in(text);
  std::string_view stem = location.path;
  // An expression without an end matches everything that begins so. Templates need no anchors.
  const bool is_open = location.kind == Kind::regex && !stem.ends_with('$');
  bool goes_on = is_open || location.kind == Kind::prefix;
  if (stem.starts_with('^')) stem.remove_prefix(1);
  if (stem.ends_with('$')) stem.remove_suffix(1);
  for (const std::string_view end : {"(.*)", ".*", "(.+)", ".+", "**", "*"}) {
    if (!stem.ends_with(end)) continue;
    stem.remove_suffix(end.size());
    goes_on = true;
    break;
  }
  if (stem.starts_with('/')) stem.remove_prefix(1);
  if (goes_on && stem.ends_with('/')) stem.remove_suffix(1);
  std::string suggested = "/" + std::string{stem};
  if (goes_on) suggested += stem.empty() ? "**" : "/**";
  // Other characters of regular expressions have no place in a template.
  const bool is_plain = suggested.find_first_of("()[]\\|+?^$") == std::string::npos;
  return is_plain && parse_path_template(suggested) ? suggested : std::string{};
}

// Of a path without its slash.
std::string not_a_path(std::string_view text) {
  const std::string path = "the path " + quoted(text);
  switch (location_in(text).kind) {
    case Location::Kind::none: break;
    case Location::Kind::regex:
      return path + " is a regular expression, which paths do not support";
    case Location::Kind::prefix:
    case Location::Kind::exact:
      return path + " begins with a modifier of nginx, which paths do not support";
  }
  return path + " does not begin with '/'";
}

Parsed<std::vector<PathSegment>> parse_segments(std::string_view text) {
  std::vector<PathSegment> segments;
  std::string_view rest = text.substr(1);
  for (bool more = true; more;) {
    const std::size_t slash = rest.find('/');
    more = slash != std::string_view::npos;
    const std::string_view part = rest.substr(0, slash);
    if (more) rest.remove_prefix(slash + 1);
    if (part.empty() && more) {
      return mistake(fmt::format("{} has an empty segment", quoted(text)), "write one '/' only");
    }
    Parsed<PathSegment> segment = parse_segment(part, text);
    if (!segment) return tl::unexpected(segment.error());
    if (segment->kind == PathSegment::Kind::rest && more) {
      return mistake(fmt::format("'**' is not at the end of {}", quoted(text)),
                     "use '*' for one segment");
    }
    if (segment->kind == PathSegment::Kind::parameter &&
        std::find(segments.begin(), segments.end(), *segment) != segments.end()) {
      return mistake(fmt::format("{{{}}} occurs twice in {}", segment->text, quoted(text)),
                     "give the two different names");
    }
    segments.push_back(*std::move(segment));
  }
  return segments;
}

}  // namespace

Parsed<std::vector<PathSegment>> parse_path_template(std::string_view text) {
  if (!text.starts_with('/')) {
    const bool is_url = text.find("://") != std::string_view::npos;
    const std::string suggested = suggested_path(text);
    return mistake(not_a_path(text),
                   is_url              ? std::string{"match the host by 'host'"}
                   : suggested.empty() ? std::string{"write a path, as in /v1/users/{id} or /v1/**"}
                                       : fmt::format("write {}", suggested));
  }
  if (text.size() > kLongestPath) {
    return mistake(fmt::format("the path {} is too long", quoted(text)),
                   fmt::format("use at most {} characters", kLongestPath));
  }
  if (const std::string_view remedy = remedy_of_characters(text); !remedy.empty()) {
    return mistake(fmt::format("the path {} holds what no path can", quoted(text)),
                   std::string{remedy});
  }
  Parsed<std::vector<PathSegment>> segments = parse_segments(text);
  if (segments && segments->size() > kMostSegments) {
    return mistake(fmt::format("the path {} has too many segments", quoted(text)),
                   fmt::format("use at most {}", kMostSegments));
  }
  return segments;
}

std::string prefix_remedy(std::string_view text) {
  if (!text.ends_with('/')) return {};
  if (text == "/") return "write /** for all paths";
  return fmt::format("write {}** for all that begin so, or {} for this one", text,
                     text.substr(0, text.size() - 1));
}

Parsed<PathTemplate> PathTemplate::parse(std::string_view text, bool case_insensitive_paths) {
  Parsed<std::vector<PathSegment>> segments = parse_path_template(text);
  if (!segments) return tl::unexpected(std::move(segments.error()));
  if (segments->back() == PathSegment{PathSegment::Kind::literal, {}}) segments->pop_back();
  PathTemplate result;
  result.text_ = text;
  result.segments_ = *std::move(segments);
  for (PathSegment& segment : result.segments_) {
    const bool is_literal = segment.kind == PathSegment::Kind::literal;
    const bool goes_on = is_literal && !result.pieces_.empty() &&
                         result.pieces_.back().kind == PathSegment::Kind::literal;
    if (!goes_on) result.pieces_.push_back({.kind = segment.kind, .text = {}});
    if (!is_literal) continue;
    segment.text = as_in_requests(segment.text);
    if (case_insensitive_paths) std::ranges::transform(segment.text, segment.text.begin(), lower);
    result.pieces_.back().text += "/" + segment.text;
    ++result.literals_;
  }
  return result;
}

bool PathTemplate::matches(std::string_view path) const noexcept {
  if (path.ends_with('/')) path.remove_suffix(1);
  for (const Piece& piece : pieces_) {
    if (piece.kind == PathSegment::Kind::rest) return true;
    if (piece.kind == PathSegment::Kind::literal) {
      const std::string& literal = piece.text;
      if (path.size() < literal.size()) return false;
      if (!same_bytes(path.data(), literal.data(), literal.size())) return false;
      path.remove_prefix(piece.text.size());
      if (!path.empty() && path.front() != '/') return false;
      continue;
    }
    if (path.empty()) return false;
    path.remove_prefix(1);
    path.remove_prefix(find_byte(path, '/'));
  }
  return path.empty();
}

std::string_view PathTemplate::value_in(std::string_view path,
                                        std::string_view parameter) const noexcept {
  PathWalker walker{path};
  for (const PathSegment& segment : segments_) {
    if (walker.done()) break;
    const std::string_view value = walker.next();
    if (segment.kind == PathSegment::Kind::parameter && segment.text == parameter) return value;
  }
  return {};
}

int compare_specificity(const PathTemplate& a, const PathTemplate& b) noexcept {
  if (a.literals() != b.literals()) return a.literals() > b.literals() ? 1 : -1;
  const std::size_t common = std::min(a.segments().size(), b.segments().size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto [mine, theirs] = std::pair{a.segments()[i].kind, b.segments()[i].kind};
    if (mine != theirs) return mine > theirs ? 1 : -1;
  }
  if (a.segments().size() == b.segments().size()) return 0;
  // Of /a/* and /a/*/*, the longer one is more specific; of /a and /a/**, the shorter.
  const bool a_is_longer = a.segments().size() > b.segments().size();
  const PathTemplate& longer = a_is_longer ? a : b;
  const bool says_more = longer.segments()[common].kind != PathSegment::Kind::rest;
  return a_is_longer == says_more ? 1 : -1;
}

}  // namespace sluice::rules
