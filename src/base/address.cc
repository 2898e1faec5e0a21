#include "base/text.h"
#include <sluice/address.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace sluice {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

IpAddress IpAddress::v4(std::uint32_t host_order) noexcept {
  IpAddress address;
  for (unsigned i = 0; i < 4; ++i) {
    address.bytes[i] = static_cast<std::uint8_t>(host_order >> (24 - 8 * i));
  }
  return address;
}

IpAddress IpAddress::v6(const std::array<std::uint8_t, 16>& bytes) noexcept {
  IpAddress address;
  if (std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin())) {
    std::copy(bytes.begin() + kMappedPrefix.size(), bytes.end(), address.bytes.begin());
    return address;
  }
  address.bytes = bytes;
  address.is_v4 = false;
  return address;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) noexcept {
  std::array<char, INET6_ADDRSTRLEN> copy{};  // with the zero that inet_pton wants
  if (text.size() >= copy.size() || text.find('\0') != std::string_view::npos) return std::nullopt;
  std::copy(text.begin(), text.end(), copy.begin());
  std::array<std::uint8_t, 16> bytes{};
  if (text.find(':') != std::string_view::npos) {
    if (::inet_pton(AF_INET6, copy.data(), bytes.data()) != 1) return std::nullopt;
    return v6(bytes);
  }
  if (::inet_pton(AF_INET, copy.data(), bytes.data()) != 1) return std::nullopt;
  IpAddress address;
  address.bytes = bytes;
  return address;
}

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> out{};
  ::inet_ntop(is_v4 ? AF_INET : AF_INET6, bytes.data(), out.data(), out.size());
  return out.data();
}

// In two words, as they are in memory: the first bit is the highest of the first byte.
IpAddress IpAddress::masked(unsigned first_bits) const noexcept {
  if (first_bits >= bits()) return *this;
  const auto mask = [](unsigned of_word) -> std::uint64_t {
    if (of_word == 0) return 0;
    const std::uint64_t high = of_word >= 64 ? ~std::uint64_t{0} : ~(~std::uint64_t{0} >> of_word);
    return std::endian::native == std::endian::little ? __builtin_bswap64(high) : high;
  };
  IpAddress result;
  for (unsigned byte = 0; byte < bytes.size(); byte += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + byte, sizeof word);
    word &= mask(first_bits > 8 * byte ? first_bits - 8 * byte : 0);
    std::memcpy(result.bytes.data() + byte, &word, sizeof word);
  }
  result.is_v4 = is_v4;
  return result;
}

std::optional<IpRange> IpRange::parse(std::string_view text) noexcept {
  const std::size_t slash = text.find('/');
  const std::optional<IpAddress> address = IpAddress::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  if (slash == std::string_view::npos) return IpRange{*address, address->bits()};
  const std::string_view digits = text.substr(slash + 1);
  const std::optional<std::uint64_t> length = parse_number(digits);
  if (!length || digits.size() > 3 || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
  // The length counts the bits of the written form: ::ffff:10.0.0.0/104 is 10.0.0.0/8.
  const bool mapped = address->is_v4 && text.find(':') != std::string_view::npos;
  const std::uint64_t skipped = mapped ? 8 * kMappedPrefix.size() : 0;
  if (*length < skipped || *length - skipped > address->bits()) return std::nullopt;
  const auto prefix_bits = static_cast<unsigned>(*length - skipped);
  if (address->masked(prefix_bits) != *address) return std::nullopt;
  return IpRange{*address, prefix_bits};
}

std::string IpRange::text() const {
  const std::string address = first.text();
  return prefix_bits == first.bits() ? address : address + "/" + std::to_string(prefix_bits);
}

}  // namespace sluice
