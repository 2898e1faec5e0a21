// Whether an authority's shard is worth waiting for.
//
// After some consecutive failures it is not: requests follow their `on_failure` without
// waiting. Now and then one of them is sent as a probe all the same, for whose reply no request
// waits. After kGood probes in time, requests wait again.
//
// One thread.
#pragma once

#include "base/random.h"
#include <sluice/time.h>

#include <cstdint>

namespace sluice::store {

class Breaker {
 public:
  static constexpr std::uint32_t kFailures = 5;  // unless the options say otherwise
  static constexpr std::uint32_t kGood = 3;
  // Give or take a half, so that nodes do not probe together.
  static constexpr Nanos kProbeEvery = std::chrono::milliseconds{100};

  explicit Breaker(std::uint32_t failures = kFailures) noexcept : failures_max_(failures) {}

  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  // When the next probe may be sent; while it is open.
  [[nodiscard]] MonoTime probe_at() const noexcept { return probe_at_; }

  // Whether it is time for a probe, which the caller then sends.
  [[nodiscard]] bool take_probe(Now now, Random& random) noexcept {
    if (!is_open_ || now.mono < probe_at_) return false;
    schedule(now, random);
    return true;
  }
  void succeeded() noexcept {
    failures_ = 0;
    if (is_open_ && ++good_ >= kGood) is_open_ = false;
  }
  // True: it opened.
  bool failed(Now now, Random& random) noexcept {
    good_ = 0;
    if (is_open_ || ++failures_ < failures_max_) return false;
    is_open_ = true;
    failures_ = 0;
    schedule(now, random);
    return true;
  }

 private:
  void schedule(Now now, Random& random) noexcept {
    const auto half = static_cast<std::uint64_t>(kProbeEvery.count()) / 2;
    probe_at_ =
        now.mono + kProbeEvery / 2 + Nanos{static_cast<std::int64_t>(random.below(2 * half))};
  }

  std::uint32_t failures_max_;
  bool is_open_ = false;
  std::uint32_t failures_ = 0;  // consecutive
  std::uint32_t good_ = 0;      // consecutive, since it opened
  MonoTime probe_at_;
};

}  // namespace sluice::store
