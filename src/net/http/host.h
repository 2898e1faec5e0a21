// The host of a request, as a Host line or an absolute target names it.
#pragma once

#include <string_view>

namespace sluice::net {

// "api.example.com", "10.0.0.1:8080", "[2001:db8::1]:443": not empty, no user, no percent signs,
// and a port of 0 to 65535 where there is a colon. Pure; no allocation.
[[nodiscard]] bool is_host(std::string_view text) noexcept;

// The same with a port that must be there: what CONNECT asks for.
[[nodiscard]] bool is_host_with_port(std::string_view text) noexcept;

}  // namespace sluice::net
