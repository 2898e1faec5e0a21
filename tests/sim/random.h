// Chance in a simulation: streams of numbers, each from the seed and a name.
//
// Every part that draws lots has a stream of its own, so that one more draw in one place does not
// shift the others: a run that differs in one fault differs in nothing else until it matters.
#pragma once

#include "base/digest.h"
#include "base/random.h"
#include <sluice/time.h>

#include <cstdint>
#include <string_view>

namespace sluice::sim {

// One thread.
class Stream {
 public:
  Stream(std::uint64_t seed, std::string_view name) noexcept : random_(seed_of(seed, name)) {}

  // Uniform in [0, bound), bound > 0.
  std::uint64_t below(std::uint64_t bound) noexcept { return random_.below(bound); }

  // Uniform in [least, most], both included.
  std::int64_t between(std::int64_t least, std::int64_t most) noexcept {
    const auto span = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least) + 1;
    const std::uint64_t drawn = span == 0 ? random_() : random_.below(span);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(least) + drawn);
  }

  // Uniform in [0, bound); 0 for a bound of 0.
  Nanos time_below(Nanos bound) noexcept {
    return bound <= Nanos{0} ? Nanos{0} : Nanos{between(0, bound.count() - 1)};
  }

  // Draws in any case, so that a changed probability does not shift what is drawn later.
  bool happens(std::uint32_t per_million) noexcept { return below(1'000'000) < per_million; }

  // For what takes a generator: the product's own jitter, std::shuffle.
  Random& generator() noexcept { return random_; }

 private:
  static std::uint64_t seed_of(std::uint64_t seed, std::string_view name) noexcept {
    SipHash13 hash{DigestSecret{.first = seed, .second = 0x736c756963652d73ULL}};
    hash.append(name);
    return hash.finish().low;
  }

  Random random_;
};

}  // namespace sluice::sim
