#include "cli/load/http/target.h"

#include "base/text.h"
#include "net/http/characters.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::cli {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";
constexpr std::string_view kRemedy = "write it as http://127.0.0.1:8080/path";

tl::unexpected<Diagnostic> no_url(std::string_view url, std::string_view why) {
  return mistake(fmt::format("{} is no URL to load: {}", quoted(url), why), std::string{kRemedy});
}

bool has_port(std::string_view authority) noexcept {
  const std::size_t colon = authority.rfind(':');
  return colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
}

}  // namespace

Parsed<HttpTarget> HttpTarget::parse(std::string_view url) {
  HttpTarget target;
  target.tls = url.starts_with(kHttps);
  if (!target.tls && !url.starts_with(kHttp)) {
    return no_url(url, "it does not begin with http:// or https://");
  }
  const std::string_view rest = url.substr(target.tls ? kHttps.size() : kHttp.size());
  const std::size_t path = std::min(rest.find_first_of("/?#"), rest.size());
  const std::string_view authority = rest.substr(0, path);
  if (authority.empty()) return no_url(url, "it names no host");
  if (authority.find('@') != std::string_view::npos) {
    return no_url(url, "names and passwords go into --header 'authorization: ...'");
  }
  const std::string_view usual_port = target.tls ? ":443" : ":80";
  const auto endpoint =
      net::Endpoint::parse(fmt::format("{}{}", authority, has_port(authority) ? "" : usual_port));
  if (!endpoint) return no_url(url, endpoint.error().remedy);
  if (endpoint->kind == net::Endpoint::Kind::any) return no_url(url, "it names no host");
  if (endpoint->kind == net::Endpoint::Kind::unix_path) {
    return no_url(url, "Unix sockets cannot be driven");
  }
  if (endpoint->port == 0) return no_url(url, "nobody listens on port 0");
  target.endpoint = *endpoint;
  target.host = authority;

  const std::string_view behind = rest.substr(path);
  if (net::find_not_a(net::target_character, behind) != behind.size()) {
    return no_url(url, "a path has no spaces, no # and nothing but ASCII; write them as %20");
  }
  if (!behind.empty())
    target.path_and_query = (behind.front() == '?' ? "/" : "") + std::string{behind};
  return target;
}

std::string HttpTarget::name() const {
  return endpoint.kind == net::Endpoint::Kind::address ? endpoint.address.text() : endpoint.name;
}

}  // namespace sluice::cli
