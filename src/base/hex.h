// Hexadecimal digits of numbers. Pure.
#pragma once

#include "base/byte_words.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace sluice {

// Eight digits in one word, the first of them in its lowest byte.
[[nodiscard]] constexpr std::uint64_t hex_word(std::uint32_t number) noexcept {
  std::uint64_t nibbles = number;  // each is moved to a byte of its own
  nibbles = (nibbles | nibbles << 16U) & 0x0000ffff0000ffffU;
  nibbles = (nibbles | nibbles << 8U) & 0x00ff00ff00ff00ffU;
  nibbles = (nibbles | nibbles << 4U) & 0x0f0f0f0f0f0f0f0fU;
  const std::uint64_t is_letter = (nibbles + 6 * kOneInEachByte) >> 4U & kOneInEachByte;
  return __builtin_bswap64(nibbles + '0' * kOneInEachByte + is_letter * ('a' - '0' - 10));
}

// Sixteen digits; returns what is behind them.
inline char* put_hex(char* at, std::uint64_t number) noexcept {
  for (const std::uint32_t half :
       {static_cast<std::uint32_t>(number >> 32U), static_cast<std::uint32_t>(number)}) {
    std::uint64_t digits = hex_word(half);
    if constexpr (std::endian::native == std::endian::big) digits = __builtin_bswap64(digits);
    std::memcpy(at, &digits, sizeof digits);
    at += sizeof digits;
  }
  return at;
}

}  // namespace sluice
