#include "net/http/client/http_url.h"

#include "base/text.h"
#include "net/http/characters.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::net {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";

// Whether the last colon separates a port: [::1] has others.
bool has_port(std::string_view authority) noexcept {
  const std::size_t colon = authority.rfind(':');
  return colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
}

struct Parts {
  std::string_view authority;
  std::string_view behind;  // path, query, fragment
};

Parts split(std::string_view text) noexcept {
  const std::size_t path = std::min(text.find_first_of("/?#"), text.size());
  return {.authority = text.substr(0, path), .behind = text.substr(path)};
}

// Why it is none; nothing if it is one.
std::string_view take_authority(std::string_view authority, HttpUrl& into) {
  if (authority.empty()) return "it names no host";
  if (authority.find('@') != std::string_view::npos) {
    return "names and passwords go into a header, authorization";
  }
  const std::string_view usual_port = into.is_tls ? ":443" : ":80";
  Parsed<Endpoint> endpoint =
      Endpoint::parse(fmt::format("{}{}", authority, has_port(authority) ? "" : usual_port));
  if (!endpoint) return "its host or port is malformed";
  if (endpoint->kind == Endpoint::Kind::any) return "it names no host";
  if (endpoint->kind == Endpoint::Kind::unix_path) return "a Unix socket has no URL";
  if (endpoint->port == 0) return "nothing listens on port 0";
  into.endpoint = *std::move(endpoint);
  into.host = authority;
  return {};
}

std::string_view take_path(std::string_view behind, HttpUrl& into) {
  if (find_not_a(target_character, behind) != behind.size()) {
    return "a path has no spaces, no # and nothing but ASCII; write them as %20";
  }
  if (!behind.empty()) {
    into.path_and_query = (behind.front() == '?' ? "/" : "") + std::string{behind};
  }
  return {};
}

}  // namespace

Parsed<HttpUrl> HttpUrl::parse(std::string_view text, std::string_view what) {
  const auto none = [&](std::string_view why) {
    return mistake(fmt::format("{} is no {}: {}", quoted(text), what, why),
                   "write it as http://127.0.0.1:8080/path");
  };
  HttpUrl url;
  url.is_tls = text.starts_with(kHttps);
  if (!url.is_tls && !text.starts_with(kHttp)) {
    return none("it does not begin with http:// or https://");
  }
  const Parts parts = split(text.substr(url.is_tls ? kHttps.size() : kHttp.size()));
  std::string_view why = take_authority(parts.authority, url);
  if (why.empty()) why = take_path(parts.behind, url);
  if (!why.empty()) return none(why);
  return url;
}

Parsed<HttpUrl> HttpUrl::parse_server(std::string_view text) {
  constexpr const char* kRemedy = "write http://127.0.0.1:9090, or unix:/run/sluice/admin.sock";
  constexpr std::string_view kPath = "unix:";
  const auto none = [&] {
    return mistake(fmt::format("{} names no server", quoted(text)), kRemedy);
  };
  if (text.starts_with(kPath)) {
    Parsed<Endpoint> endpoint = Endpoint::parse(text);
    if (!endpoint) return none();
    return HttpUrl{.endpoint = *std::move(endpoint), .host = "localhost"};
  }
  const bool has_scheme = text.find("://") != std::string_view::npos;
  Parsed<HttpUrl> url = parse(has_scheme ? std::string{text} : fmt::format("{}{}", kHttp, text));
  if (!url || url->path_and_query != "/") return none();
  return url;
}

std::string HttpUrl::name() const {
  return endpoint.kind == Endpoint::Kind::address ? endpoint.address.text() : endpoint.name;
}

std::string HttpUrl::server() const {
  if (endpoint.kind == Endpoint::Kind::unix_path) return endpoint.text();
  return fmt::format("{}{}", is_tls ? kHttps : kHttp, host);
}

}  // namespace sluice::net
