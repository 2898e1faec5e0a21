// What compiling and matching of a RuleSet agree on: what things are filed under.
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

// Of a longer value of a query field that has to be decoded, the beginning is looked at.
inline constexpr std::size_t kFieldBytesMax = 1024;

// A bit for how a header's name looks at first sight, by its length and its last letter in any
// case: most headers are not asked for by any rule, and this tells without reading them.
[[nodiscard]] inline std::uint64_t look_of(std::string_view name) noexcept {
  const unsigned last = name.empty() ? 0U : static_cast<unsigned char>(name.back()) & 0x1fU;
  return std::uint64_t{1} << ((name.size() * 7 + last) & 63U);
}

inline constexpr std::array<std::string_view, 9> kUsualMethods{
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};

// 0: none of the usual ones.
[[nodiscard]] inline std::uint32_t method_bit(std::string_view method) noexcept {
  const auto found = std::ranges::find(kUsualMethods, method);
  return found == kUsualMethods.end() ? 0
                                      : 1U << static_cast<unsigned>(found - kUsualMethods.begin());
}

// What a name and the bytes of a masked address are filed under.
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
