#include "frontend/admin/guard.h"

#include "net/http/host.h"
#include "net/loopback.h"
#include <sluice/address.h>

namespace sluice::admin {
namespace {

constexpr std::string_view kScheme = "bearer ";

// Without its port, and the brackets of an IPv6 address.
std::string_view name_of(std::string_view host) noexcept {
  if (!host.starts_with('[')) return host.substr(0, host.find(':'));
  return host.substr(1, host.find(']') - 1);
}

// "http://127.0.0.1:9090". An origin without a scheme has no host, like the "null" of sandboxes.
std::string_view host_of_origin(std::string_view origin) noexcept {
  constexpr std::string_view kEnd = "://";
  const std::size_t end = origin.find(kEnd);
  return end == std::string_view::npos ? std::string_view{} : origin.substr(end + kEnd.size());
}

// A page of this listener, or of another one on this machine.
bool is_here(std::string_view origin, std::string_view host) noexcept {
  if (!names_no_domain(origin)) return false;
  if (equals_ignoring_case(origin, host)) return true;
  const std::optional<IpAddress> address = IpAddress::parse(name_of(origin));
  return !address || net::is_loopback(*address);  // not an address: localhost
}

}  // namespace

bool names_no_domain(std::string_view host) noexcept {
  if (!net::is_host(host)) return false;
  const std::string_view name = name_of(host);
  return equals_ignoring_case(name, "localhost") || IpAddress::parse(name).has_value();
}

bool Guard::has_token(const Request& request) const noexcept {
  const std::string_view value = request.header("authorization").value_or("");
  if (!equals_ignoring_case(value.substr(0, kScheme.size()), kScheme)) return false;
  return crypto::equal_in_constant_time(crypto::sha256(value.substr(kScheme.size())), *token_);
}

std::optional<Reply> Guard::refuse(const Request& request) const {
  if (token_) {
    if (has_token(request)) return std::nullopt;
    Reply reply =
        problem(401, "Present the token of the configuration: Authorization: Bearer TOKEN.");
    reply.headers.emplace_back("www-authenticate", "Bearer");
    return reply;
  }
  if (!request.is_local && !names_no_domain(request.host)) {
    return problem(
        403,
        "Without a token, use an address or localhost as host: other names may be DNS rebinding.");
  }
  const std::optional<std::string_view> origin = request.header("origin");
  if (origin && !is_here(host_of_origin(*origin), request.host)) {
    return problem(403, "Without a token, cross-origin requests are rejected.");
  }
  return std::nullopt;
}

}  // namespace sluice::admin
