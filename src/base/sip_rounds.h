// The steps of SipHash-1-3, inline: a key is hashed on every decision, and a call in between would
// keep the processor from going on to the next key while it waits for the memory of this one.
#pragma once

#include <bit>
#include <cstdint>

namespace sluice::sip {

// What is known of the words so far.
struct State {
  std::uint64_t v0, v1, v2, v3;
};

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
