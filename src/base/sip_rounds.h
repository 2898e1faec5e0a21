// The steps of SipHash-1-3, inline: a key is hashed on every decision, and a call in between would
// keep the processor from going on to the next key while it waits for the memory of this one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::sip {

// What is known of the words so far.
struct State {
  std::uint64_t v0, v1, v2, v3;
};

// SipHash reads words as little-endian.
[[gnu::always_inline]] inline std::uint64_t load_half(const char* bytes) noexcept {
  std::uint32_t half = 0;
  std::memcpy(&half, bytes, sizeof half);
  if constexpr (std::endian::native == std::endian::big) half = __builtin_bswap32(half);
  return half;
}
[[gnu::always_inline]] inline std::uint64_t load_word(const char* bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

// The same of at most seven bytes, the rest zero.
[[gnu::always_inline]] inline std::uint64_t load_short(const char* bytes,
                                                       std::size_t size) noexcept {
  const auto byte = [bytes](std::size_t at) {
    return std::uint64_t{static_cast<unsigned char>(bytes[at])} << (8 * at);
  };
  if (size == 0) return 0;
  if (size < 4) return byte(0) | byte(size / 2) | byte(size - 1);
  return load_half(bytes) | load_half(bytes + size - 4) << (8 * (size - 4));
}

// What is left of a text after its whole words.
[[gnu::always_inline]] inline std::uint64_t load_rest(const char* bytes,
                                                      std::size_t size) noexcept {
  if (size < sizeof(std::uint64_t)) return load_short(bytes, size);
  // The upper bytes of the last eight. In two steps, as a shift by all 64 bits is undefined.
  return load_word(bytes + size - sizeof(std::uint64_t)) >> 1U >> (~(8 * size) & 63U);
}

[[gnu::always_inline]] inline void round(State& s) noexcept {
  s.v0 += s.v1;
  s.v2 += s.v3;
  s.v1 = std::rotl(s.v1, 13) ^ s.v0;
  s.v3 = std::rotl(s.v3, 16) ^ s.v2;
  s.v0 = std::rotl(s.v0, 32);
  s.v2 += s.v1;
  s.v0 += s.v3;
  s.v1 = std::rotl(s.v1, 17) ^ s.v2;
  s.v3 = std::rotl(s.v3, 21) ^ s.v0;
  s.v2 = std::rotl(s.v2, 32);
}

[[gnu::always_inline]] inline void absorb(State& state, std::uint64_t word) noexcept {
  state.v3 ^= word;
  round(state);
  state.v0 ^= word;
}

// The halves of the digest come one after the other.
[[gnu::always_inline]] inline std::uint64_t squeeze(State& state) noexcept {
  for (int i = 0; i < 3; ++i) round(state);
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}
[[gnu::always_inline]] inline std::uint64_t squeeze_low(State& state) noexcept {
  state.v2 ^= 0xee;
  return squeeze(state);
}
}  // namespace sluice::sip
