// A histogram of durations with a bounded relative error and fixed memory.
//
// Values up to 63 ns are exact; above that each power of two is cut into 64 buckets, so a
// percentile is at most 1/64 too high and never too low. One thread.
#pragma once

#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice {

class Histogram {
 public:
  void record(Nanos value) noexcept;
  // All that the other one has recorded.
  void add(const Histogram& other) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] Nanos max() const noexcept { return max_; }

  // A value that the given share of all recorded ones does not exceed; 0 when there are none.
  [[nodiscard]] Nanos percentile(double share) const noexcept;

 private:
  static constexpr unsigned kSubBits = 6;
  static constexpr std::size_t kBuckets = std::size_t{64 - kSubBits} << kSubBits;

  [[nodiscard]] static std::size_t bucket_of(std::uint64_t nanos) noexcept;
  [[nodiscard]] static std::uint64_t highest_in(std::size_t bucket) noexcept;

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  Nanos max_{0};
};

}  // namespace sluice
