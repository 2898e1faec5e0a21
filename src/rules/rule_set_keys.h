// The keys of the index, shared by compiling and matching of a RuleSet.
#pragma once

#include "rules/rule_index.h"
#include <sluice/address.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::rules {

// Names of this length and more are compared, not indexed.
inline constexpr std::size_t kIndexedNameMax = 64;

// Only so much of a query field's value is compared if it has to be decoded.
inline constexpr std::size_t kFieldBytesMax = 1024;

// A bit for a header's name, by its length and its last letter in any case: no rule has a condition
// on most headers, and this skips them without reading them.
[[nodiscard]] inline std::uint64_t look_of(std::string_view name) noexcept {
  const unsigned last = name.empty() ? 0U : static_cast<unsigned char>(name.back()) & 0x1fU;
  return std::uint64_t{1} << ((name.size() * 7 + last) & 63U);
}

inline constexpr std::array<std::string_view, 9> kUsualMethods{
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};

// 0: not a common method.
[[nodiscard]] inline std::uint32_t method_bit(std::string_view method) noexcept {
  const auto found = std::ranges::find(kUsualMethods, method);
  return found == kUsualMethods.end() ? 0
                                      : 1U << static_cast<unsigned>(found - kUsualMethods.begin());
}

// The key of a name and the bytes of a masked address.
[[nodiscard]] inline IndexKey address_key(const IpAddress& address, unsigned bits) noexcept {
  const IpAddress masked = address.masked(bits);
  const char head[2] = {address.is_v4 ? '4' : '6', static_cast<char>(bits)};
  return index_key(Asks::address, {head, sizeof head},
                   {reinterpret_cast<const char*>(masked.bytes.data()), masked.bytes.size()});
}

[[nodiscard]] inline std::string_view bytes_of(const std::uint32_t& number) noexcept {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace sluice::rules
