// Addresses of clients, and ranges of them.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// IPv4 or IPv6. An IPv4 address that is written as an IPv6 one (::ffff:1.2.3.4) is the IPv4 one:
// the same client must not count twice.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};  // IPv4: the first four
  bool is_v4 = true;

  // No port, no brackets, no zone, no octal; nothing for any other text.
  [[nodiscard]] static std::optional<IpAddress> parse(std::string_view text) noexcept;
  [[nodiscard]] static IpAddress v4(std::uint32_t host_order) noexcept;
  [[nodiscard]] static IpAddress v6(const std::array<std::uint8_t, 16>& bytes) noexcept;

  [[nodiscard]] unsigned bits() const noexcept { return is_v4 ? 32 : 128; }
  [[nodiscard]] std::string text() const;  // as RFC 5952 writes it

  // With all but the first bits zero; more bits than there are change nothing.
  [[nodiscard]] IpAddress masked(unsigned first_bits) const noexcept;

  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

// All addresses with the same first bits: 10.0.0.0/8.
struct IpRange {
  IpAddress first;  // masked
  unsigned prefix_bits = 32;

  // An address alone is a range of one. Bits behind the prefix must be zero: 10.1.2.3/8 is more
  // likely a mistake than a wish.
  [[nodiscard]] static std::optional<IpRange> parse(std::string_view text) noexcept;

  [[nodiscard]] bool contains(const IpAddress& address) const noexcept {
    return address.is_v4 == first.is_v4 && address.masked(prefix_bits) == first;
  }
  [[nodiscard]] std::string text() const;

  friend auto operator<=>(const IpRange&, const IpRange&) = default;
};

}  // namespace sluice
