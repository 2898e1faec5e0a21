// A client's address as logs and options write it.
#pragma once

#include <sluice/address.h>

#include <optional>
#include <string>
#include <string_view>

namespace sluice::cli {

// A client that comes through a Unix socket has no address: it is 0.0.0.0 to rules, and `unix` in
// logs, which is read back here.
[[nodiscard]] inline std::optional<IpAddress> parse_client_ip(std::string_view text) noexcept {
  return text == "unix" ? IpAddress{} : IpAddress::parse(text);
}

[[nodiscard]] inline std::string client_ip_text(const IpAddress& address) {
  return address == IpAddress{} ? std::string{"unix"} : address.text();
}

}  // namespace sluice::cli
