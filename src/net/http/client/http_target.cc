#include "net/http/client/http_target.h"

#include "base/text.h"

#include <fmt/format.h>

#include <utility>

namespace sluice::net {
namespace {

constexpr std::string_view kHttp = "http://";

// Whether the last colon separates a port: [::1] has others.
bool has_port(std::string_view authority) noexcept {
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.rfind(':');
  return colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
}

}  // namespace

Parsed<HttpTarget> HttpTarget::parse(std::string_view text) {
  constexpr const char* kRemedy = "write http://127.0.0.1:9090, or unix:/run/sluice/admin.sock";
  std::string_view rest = text;
  if (rest.starts_with(kHttp)) rest.remove_prefix(kHttp.size());
  if (rest.find("://") != std::string_view::npos) {
    return mistake(fmt::format("{} is not reached by http", quoted(text)), kRemedy);
  }
  const bool is_path = rest.starts_with("unix:");
  if (!is_path && rest.ends_with('/')) rest.remove_suffix(1);
  const bool is_whole = is_path || has_port(rest);
  Parsed<Endpoint> endpoint =
      Endpoint::parse(is_whole ? std::string{rest} : fmt::format("{}:80", rest));
  if (!endpoint || endpoint->kind == Endpoint::Kind::any) {
    return mistake(fmt::format("{} names no server", quoted(text)), kRemedy);
  }
  return HttpTarget{.endpoint = *std::move(endpoint),
                    .host = is_path ? "localhost" : std::string{rest},
                    .text = is_path ? std::string{rest} : fmt::format("{}{}", kHttp, rest)};
}

}  // namespace sluice::net
