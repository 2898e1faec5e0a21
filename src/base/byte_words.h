// Eight bytes of a text at a time, in one word. Pure.
#pragma once

#include <cstdint>
#include <cstring>

namespace sluice {

inline constexpr std::uint64_t kOneInEachByte = 0x0101010101010101ULL;
inline constexpr std::uint64_t kHighBits = kOneInEachByte << 7U;

[[nodiscard]] inline std::uint64_t load_word(const char* bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// The high bit of each byte that equals the character. Exact for the lowest of them; a borrow may
// set it in bytes above, so who finds something has to look again. None is missed.
[[nodiscard]] constexpr std::uint64_t where_equal(std::uint64_t word, char c) noexcept {
  const std::uint64_t differs = word ^ (kOneInEachByte * static_cast<unsigned char>(c));
  return (differs - kOneInEachByte) & ~differs & kHighBits;
}

// The same for bytes below a value, which is at most 0x80.
[[nodiscard]] constexpr std::uint64_t where_below(std::uint64_t word,
                                                  unsigned char value) noexcept {
  return (word - kOneInEachByte * value) & ~word & kHighBits;
}

}  // namespace sluice
