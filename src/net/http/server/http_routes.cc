#include "net/http/server/http_routes.h"

#include <algorithm>
#include <utility>

namespace sluice::net {
namespace {

// "/v1/rules" is "v1", "rules"; "/" is one empty part. What does not begin with a slash, as the
// targets of CONNECT and OPTIONS * do not, has no parts and matches nothing.
std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    parts.push_back(path.substr(0, path.find('/')));
    path.remove_prefix(parts.back().size());
  }
  return parts;
}

// Decoded or not, these name a folder: a handler that builds a path from its parameter must not
// get one.
bool is_dots(std::string_view value) noexcept { return value == "." || value == ".."; }

// A decoded parameter may hold separators, those of other systems included.
bool has_dots(std::string_view value) noexcept {
  constexpr std::string_view kSeparators = "/\\";
  while (true) {
    const std::size_t end = value.find_first_of(kSeparators);
    if (is_dots(value.substr(0, end))) return true;
    if (end == std::string_view::npos) return false;
    value.remove_prefix(end + 1);
  }
}

}  // namespace

// ---- filling ----------------------------------------------------------------------------------

std::vector<HttpRoutes::Segment> HttpRoutes::segments_of(std::string_view pattern) {
  std::vector<Segment> segments;
  for (const std::string_view part : parts_of(pattern)) {
    const bool is_parameter = part.starts_with('{') && part.ends_with('}');
    segments.push_back({.text = std::string{is_parameter ? part.substr(1, part.size() - 2) : part},
                        .is_parameter = is_parameter});
  }
  return segments;
}

HttpRoute& HttpRoutes::new_route(std::string_view method, std::string_view pattern) {
  const auto [found, is_new] = paths_.try_emplace(std::string{pattern});
  Path& path = found->second;
  if (is_new) {
    path.pattern = pattern;
    path.segments = segments_of(pattern);
  }
  return path.by_method[std::string{method}];
}

void HttpRoutes::add(std::string_view method, std::string_view pattern, HttpHandler handler,
                     const RouteOptions& options) {
  new_route(method, pattern) = {std::move(handler), nullptr, options};
}

void HttpRoutes::add(std::string_view method, std::string_view pattern, PlainHandler handler,
                     const RouteOptions& options) {
  new_route(method, pattern) = {nullptr, std::move(handler), options};
}

void HttpRoutes::set_fallback(PlainHandler handler, const RouteOptions& options) {
  fallback_ = {nullptr, std::move(handler), options};
}

// ---- matching ---------------------------------------------------------------------------------

bool HttpRoutes::is_alike(const Path& path, const Parts& parts) noexcept {
  const auto fits = [](const Segment& segment, std::string_view part) {
    return segment.is_parameter ? !part.empty() && !is_dots(part) : segment.text == part;
  };
  return std::ranges::equal(path.segments, parts, fits);
}

// Of two that match the same path.
bool HttpRoutes::is_closer(const Path& path, const Path& than) noexcept {
  return std::ranges::lexicographical_compare(path.segments, than.segments, {},
                                              &Segment::is_parameter, &Segment::is_parameter);
}

const HttpRoutes::Path* HttpRoutes::find(const Parts& parts) const noexcept {
  const Path* best = nullptr;
  for (const auto& [pattern, path] : paths_) {
    if (!is_alike(path, parts)) continue;
    if (best == nullptr || is_closer(path, *best)) best = &path;
  }
  return best;
}

bool HttpRoutes::take_parameters(const Path& path, const Parts& parts,
                                 std::vector<PathParameter>& into) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!path.segments[i].is_parameter) continue;
    std::optional<std::string> value = percent_decoded(parts[i]);
    if (!value || has_dots(*value)) return false;
    into.push_back({.name = path.segments[i].text, .value = *std::move(value)});
  }
  return true;
}

std::string HttpRoutes::methods_of(const Path& path) {
  std::string methods;
  const auto put = [&methods](std::string_view method) {
    if (!methods.empty()) methods += ", ";
    methods += method;
  };
  for (const auto& [method, route] : path.by_method) {
    put(method);
    if (method == "GET" && !path.by_method.contains("HEAD")) put("HEAD");
  }
  return methods;
}

RouteMatch HttpRoutes::match(std::string_view method, std::string_view path_text) const {
  using Kind = RouteMatch::Kind;
  RouteMatch match;
  const Parts parts = parts_of(path_text);
  const Path* const path = parts.empty() ? nullptr : find(parts);
  if (path != nullptr) {
    match.pattern = path->pattern;
    match.allow = methods_of(*path);
    auto found = path->by_method.find(method);
    if (found == path->by_method.end() && method == "HEAD") found = path->by_method.find("GET");
    match.kind = found == path->by_method.end() ? Kind::no_method : Kind::found;
    if (match.kind == Kind::found) match.route = &found->second;
    if (!take_parameters(*path, parts, match.parameters)) match.kind = Kind::malformed;
  }
  const bool has_none = match.kind == Kind::no_path || match.kind == Kind::no_method;
  if (has_none && fallback_) {
    match = {
        .kind = Kind::found, .route = &*fallback_, .pattern = {}, .parameters = {}, .allow = {}};
  }
  return match;
}

}  // namespace sluice::net
