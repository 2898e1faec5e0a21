// Eight bytes of a text at a time, in one word. Pure.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice {

inline constexpr std::uint64_t kOneInEachByte = 0x0101010101010101ULL;
inline constexpr std::uint64_t kHighBits = kOneInEachByte << 7U;

// The first byte is the lowest one, on every machine.
[[nodiscard, gnu::always_inline]] inline std::uint64_t load_half(const char* bytes) noexcept {
  std::uint32_t half = 0;
  std::memcpy(&half, bytes, sizeof half);
  if constexpr (std::endian::native == std::endian::big) half = __builtin_bswap32(half);
  return half;
}
[[nodiscard, gnu::always_inline]] inline std::uint64_t load_word(const char* bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

// The same of at most seven bytes, the rest zero.
[[nodiscard, gnu::always_inline]] inline std::uint64_t load_short(const char* bytes,
                                                                  std::size_t size) noexcept {
  const auto byte = [bytes](std::size_t at) {
    return std::uint64_t{static_cast<unsigned char>(bytes[at])} << (8 * at);
  };
  if (size == 0) return 0;
  if (size < 4) return byte(0) | byte(size / 2) | byte(size - 1);
  return load_half(bytes) | load_half(bytes + size - 4) << (8 * (size - 4));
}

// Of texts so short that a call of memcmp costs more than the comparison.
[[nodiscard]] inline bool same_bytes(const char* a, const char* b, std::size_t size) noexcept {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (size < kWord) return load_short(a, size) == load_short(b, size);
  for (std::size_t i = 0; i + kWord < size; i += kWord) {
    if (load_word(a + i) != load_word(b + i)) return false;
  }
  return load_word(a + size - kWord) == load_word(b + size - kWord);
}
[[nodiscard]] inline bool same_bytes(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && same_bytes(a.data(), b.data(), a.size());
}

// The high bit of each byte that equals the character. Exact for the lowest of them; a borrow may
// set it in bytes above, so who finds something has to look again. None is missed.
[[nodiscard]] constexpr std::uint64_t where_equal(std::uint64_t word, char c) noexcept {
  const std::uint64_t differs = word ^ (kOneInEachByte * static_cast<unsigned char>(c));
  return (differs - kOneInEachByte) & ~differs & kHighBits;
}

// The same for bytes below a value, which is at most 0x7f.
[[nodiscard]] constexpr std::uint64_t where_below(std::uint64_t word,
                                                  unsigned char value) noexcept {
  return (word - kOneInEachByte * value) & ~word & kHighBits;
}

// The same for bytes from one value to another, both below 0x80; exact for each of them.
[[nodiscard]] constexpr std::uint64_t where_between(std::uint64_t word, unsigned char first,
                                                    unsigned char last) noexcept {
  const std::uint64_t low = word & ~kHighBits;  // so that no sum reaches the next byte
  const std::uint64_t from_first = low + kOneInEachByte * (0x80U - first);
  const std::uint64_t above_last = low + kOneInEachByte * (0x7fU - last);
  return from_first & ~above_last & ~word & kHighBits;
}

// Where the character stands first, or the length of the text; for texts so short that a call of
// memchr costs more than the search. Not for the zero character.
[[nodiscard]] inline std::size_t find_byte(std::string_view text, char c) noexcept {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const auto first_in = [](std::uint64_t found) {
    return static_cast<std::size_t>(std::countr_zero(found)) / 8U;
  };
  std::size_t i = 0;
  for (; i + kWord <= text.size(); i += kWord) {
    const std::uint64_t found = where_equal(load_word(text.data() + i), c);
    if (found != 0) return i + first_in(found);
  }
  const std::uint64_t found = where_equal(load_short(text.data() + i, text.size() - i), c);
  return found != 0 ? i + first_in(found) : text.size();
}

}  // namespace sluice
