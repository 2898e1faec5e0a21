// The one spelling of a host name. Pure; no allocation.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace sluice::identity {

// The longest name that DNS allows, with a dot at its end.
inline constexpr std::size_t kHostScratchBytes = 256;

// From Host, :authority or an absolute target: lower case, without port, user and trailing dot.
// Addresses of IPv6 keep their brackets. Nothing for what is no host, or too long for the scratch;
// the empty host is one. The result is in the scratch, or the argument itself.
[[nodiscard]] std::optional<std::string_view> normalise_host(std::string_view host,
                                                             std::span<char> scratch) noexcept;

}  // namespace sluice::identity
