#include "metrics/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sluice {

// The first 2^kSubBits buckets hold one value each; then every power of two has as many buckets.
std::size_t Histogram::bucket_of(std::uint64_t nanos) noexcept {
  const auto width = static_cast<unsigned>(std::bit_width(nanos));
  if (width <= kSubBits) return static_cast<std::size_t>(nanos);
  const unsigned shift = width - kSubBits - 1;
  return (std::size_t{shift} << kSubBits) + static_cast<std::size_t>(nanos >> shift);
}

std::uint64_t Histogram::highest_in(std::size_t bucket) noexcept {
  constexpr std::size_t kPerPower = std::size_t{1} << kSubBits;
  if (bucket < 2 * kPerPower) return bucket;
  const std::size_t shift = bucket / kPerPower - 1;
  const std::uint64_t lowest = (bucket - shift * kPerPower) << shift;
  return lowest + (std::uint64_t{1} << shift) - 1;
}

void Histogram::record(Nanos value) noexcept {
  const Nanos shown = std::max(value, Nanos{0});
  ++counts_[bucket_of(static_cast<std::uint64_t>(shown.count()))];
  ++count_;
  max_ = std::max(max_, shown);
}

void Histogram::add(const Histogram& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

Nanos Histogram::percentile(double share) const noexcept {
  if (count_ == 0) return Nanos{0};
  const auto rank = static_cast<std::uint64_t>(
      std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen >= rank && seen > 0) {
      return std::min(max_, Nanos{static_cast<std::int64_t>(highest_in(i))});
    }
  }
  return max_;
}

}  // namespace sluice
