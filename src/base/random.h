// Seeded randomness: jitter, sampling and test traffic that a seed repeats exactly.
//
// xoshiro256** seeded by splitmix64. Fast and well distributed; not for secrets. One thread.
#pragma once

#include <sluice/int128.h>

#include <array>
#include <bit>
#include <cstdint>

namespace sluice {

class Random {
 public:
  using result_type = std::uint64_t;  // a UniformRandomBitGenerator

  explicit constexpr Random(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : state_) word = split_mix(seed);
  }

  static constexpr std::uint64_t min() noexcept { return 0; }
  static constexpr std::uint64_t max() noexcept { return ~std::uint64_t{0}; }

  constexpr std::uint64_t operator()() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17U;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), bound > 0. The bias of the multiplication is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    return static_cast<std::uint64_t>(Uint128{(*this)()} * bound >> 64U);
  }

 private:
  static constexpr std::uint64_t split_mix(std::uint64_t& seed) noexcept {
    seed += 0x9e3779b97f4a7c15ULL;
    std::uint64_t word = seed;
    word = (word ^ (word >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    word = (word ^ (word >> 27U)) * 0x94d049bb133111ebULL;
    return word ^ (word >> 31U);
  }

  std::array<std::uint64_t, 4> state_{};
};

}  // namespace sluice
