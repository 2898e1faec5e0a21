// Addresses that never leave the machine. Pure.
#pragma once

#include <sluice/address.h>

#include <algorithm>

namespace sluice::net {

// 127.0.0.0/8 and ::1.
[[nodiscard]] inline bool is_loopback(const IpAddress& address) noexcept {
  if (address.is_v4) return address.bytes[0] == 127;
  const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
  return std::all_of(address.bytes.begin(), address.bytes.end() - 1, is_zero) &&
         address.bytes.back() == 1;
}

}  // namespace sluice::net
