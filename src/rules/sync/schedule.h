// When a periodic job runs: the timing alone, without thread or clock.
//
// The job never runs twice at a time. The next run is counted from the end of the last one, so a
// run that takes longer than the interval is followed by a pause and not by a queue of runs. After
// failures the pauses grow, by the number of consecutive failures. A requested run begins after the
// request: requests during a run share the next one.
//
// One thread.
#pragma once

#include "base/random.h"
#include <sluice/time.h>

#include <chrono>
#include <cstdint>

namespace sluice::rules {

struct ScheduleTimes {
  Nanos interval = std::chrono::seconds{10};  // after a success; > 0
  Nanos retry = std::chrono::seconds{1};      // after the first failure, then doubled; > 0
  Nanos retry_max = std::chrono::minutes{1};  // >= retry
  // Each pause is longer or shorter by up to this part of it, so that nodes that were started
  // together do not poll together. At most 50.
  std::uint32_t jitter_percent = 10;
};

class Schedule {
 public:
  // The first run is one interval after `now`, unless an earlier one is requested.
  Schedule(const ScheduleTimes& times, std::uint64_t seed, MonoTime now) noexcept;

  void ask() noexcept { asked_ = true; }

  // When the next run is due: long ago if it was requested, never during a run.
  [[nodiscard]] MonoTime due() const noexcept;

  void began() noexcept;
  void ended(MonoTime now, bool success) noexcept;

  [[nodiscard]] bool running() const noexcept { return running_; }

  static constexpr MonoTime kNever = MonoTime::max();

 private:
  [[nodiscard]] Nanos pause() const noexcept;
  [[nodiscard]] Nanos with_jitter(Nanos pause) noexcept;

  ScheduleTimes times_;
  Random random_;
  std::uint32_t failures_ = 0;  // consecutive
  MonoTime next_;
  bool asked_ = false;
  bool running_ = false;
};

}  // namespace sluice::rules
