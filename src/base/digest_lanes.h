// Several digests at once, one in each lane of vector registers: the part of digest.cc that depends
// on the processor. For KeyHasher only, which decides when it pays.
#pragma once

#include "base/digest.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice {

inline constexpr std::size_t kMostLanes = 16;      // values in one call
inline constexpr std::size_t kLongestInLane = 80;  // bytes of a value

// Digests values[i] to digests[i]. Only on x86-64 processors with AVX2 and BMI2.
void digest_lanes(const KeyMidstate& start, std::span<const std::string_view> values,
                  std::span<Digest> digests) noexcept;
void digest_lanes_low(const KeyMidstate& start, std::span<const std::string_view> values,
                      std::span<std::uint64_t> lows) noexcept;

}  // namespace sluice
