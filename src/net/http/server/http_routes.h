// Which handler responds to which path and method.
//
// A pattern is a path whose segments may be parameters: /v1/rules/{name}. A parameter takes one
// segment, decoded, never an empty one, and none that has "." or ".." between escaped slashes or
// backslashes. All other segments are compared as sent, so that an escaped or dotted spelling of a
// path matches nothing. Where several patterns match, the one with a plain segment at the first
// difference wins. Filled at start; immutable in use.
#pragma once

#include "net/http/http_response.h"
#include "net/http/server/http_request.h"
#include "net/http/server/responder.h"
#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::net {

// Responds now, or keeps the responder and responds later, in the same thread.
using HttpHandler = std::function<void(const HttpRequest&, Responder)>;
// For handlers that always respond at once.
using PlainHandler = std::function<HttpResponse(const HttpRequest&)>;

struct RouteOptions {
  std::optional<std::size_t> body_bytes_max;  // else that of the server
  std::optional<Nanos> response_timeout;      // else that of the server
  // A long poll or a stream: counts against the server's `long_lived_max` from its headers to the
  // end of the wait or stream.
  bool long_lived = false;
};

// One of the two handlers.
struct HttpRoute {
  HttpHandler handler;
  PlainHandler plain;
  RouteOptions options;
};

struct RouteMatch {
  enum class Kind : std::uint8_t {
    found,
    no_path,
    no_method,  // the path has others: `allow`
    malformed,  // a parameter cannot be decoded
  };
  Kind kind = Kind::no_path;
  const HttpRoute* route = nullptr;  // when found
  std::string_view pattern;          // of the path, where one matches
  std::vector<PathParameter> parameters;
  std::string allow;  // methods of the path: "GET, HEAD, POST"
};

class HttpRoutes {
 public:
  // GET is also asked by HEAD; the server drops the body.
  void add(std::string_view method, std::string_view pattern, HttpHandler handler,
           const RouteOptions& options = {});
  void add(std::string_view method, std::string_view pattern, PlainHandler handler,
           const RouteOptions& options = {});
  // For every method and path that has no route.
  void set_fallback(PlainHandler handler, const RouteOptions& options = {});

  // Views in the match last as long as the routes.
  [[nodiscard]] RouteMatch match(std::string_view method, std::string_view path) const;

 private:
  struct Segment {
    std::string text;  // of a parameter: its name
    bool is_parameter = false;
  };
  struct Path {
    std::string pattern;
    std::vector<Segment> segments;
    std::map<std::string, HttpRoute, std::less<>> by_method;
  };
  using Parts = std::vector<std::string_view>;

  [[nodiscard]] static std::vector<Segment> segments_of(std::string_view pattern);
  [[nodiscard]] static bool is_alike(const Path& path, const Parts& parts) noexcept;
  [[nodiscard]] static bool is_closer(const Path& path, const Path& than) noexcept;
  [[nodiscard]] static bool take_parameters(const Path& path, const Parts& parts,
                                            std::vector<PathParameter>& into);
  [[nodiscard]] static std::string methods_of(const Path& path);
  [[nodiscard]] const Path* find(const Parts& parts) const noexcept;
  [[nodiscard]] HttpRoute& new_route(std::string_view method, std::string_view pattern);

  std::map<std::string, Path, std::less<>> paths_;  // by pattern; views point into them
  std::optional<HttpRoute> fallback_;
};

}  // namespace sluice::net
