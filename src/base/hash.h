// Hashes for tables in memory: a few multiplications, all 64 bits well mixed. Pure.
//
// Not keyed, so that a client could make its keys collide. They are for tables whose keys an
// operator writes, and for tables that mix in a seed of their own; counters of clients have
// base/digest.h. Nothing may store them: they differ from version to version.
#pragma once

#include "base/byte_words.h"
#include <sluice/address.h>
#include <sluice/int128.h>

#include <cstdint>
#include <string_view>

namespace sluice {

inline constexpr std::uint64_t kOddFactor = 0x9e3779b97f4a7c15ULL;

// Both halves of the product, so that every bit of the result depends on every bit of the factors.
[[nodiscard]] inline std::uint64_t folded(std::uint64_t a, std::uint64_t b) noexcept {
  const Uint128 product = Uint128{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

[[nodiscard]] inline std::uint64_t hash_text(std::uint64_t seed, std::string_view text) noexcept {
  std::uint64_t hash = folded(seed ^ (text.size() * 0xc2b2ae3d27d4eb4fULL), kOddFactor);
  for (; text.size() >= 8; text.remove_prefix(8)) {
    hash = folded(hash ^ load_word(text.data()), kOddFactor);
  }
  const std::uint64_t last = load_short(text.data(), text.size());
  return folded(hash ^ last, 0xd6e8feb86659fd93ULL);
}

[[nodiscard]] inline std::uint64_t hash_address(std::uint64_t seed,
                                                const IpAddress& address) noexcept {
  const auto* const bytes = reinterpret_cast<const char*>(address.bytes.data());
  const std::uint64_t hash = folded(seed ^ load_word(bytes), kOddFactor);
  return folded(hash ^ load_word(bytes + 8), 0xd6e8feb86659fd93ULL);
}

}  // namespace sluice
