// How many connections of a pool were in use at once lately: as many are worth keeping.
//
// The peak of the current period and the one before, so it covers at least one period and at most
// two. A burst that returns within a period finds its connections; a rarer one does not. Pure
// integers, no clock, no allocation. One thread.
#pragma once

#include <sluice/time.h>

#include <algorithm>
#include <cstdint>

namespace sluice::gateway {

class PoolDemand {
 public:
  explicit PoolDemand(Nanos period) noexcept : period_(period) {}

  // Records how many are in use now. Called when the number grows, and before it falls: in between
  // it does not change, so that a silence of any length is covered.
  void count(std::uint32_t in_use, MonoTime now) noexcept {
    const Nanos passed = now - began_;
    if (passed >= period_) {
      before_ = passed < period_ * 2 ? peak_ : in_use;
      peak_ = in_use;
      began_ = now;
    }
    peak_ = std::max(peak_, in_use);
  }

  // As of the last count.
  [[nodiscard]] std::uint32_t peak() const noexcept { return std::max(peak_, before_); }

 private:
  Nanos period_;
  MonoTime began_;  // of the current period
  std::uint32_t peak_ = 0;
  std::uint32_t before_ = 0;  // the peak of the period before
};

}  // namespace sluice::gateway
