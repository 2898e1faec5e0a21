// The seam through which time enters.
#pragma once

#include <sluice/time.h>

namespace sluice {

// Implementations never let `mono` go back between two calls of one thread, and state their
// thread-safety.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  [[nodiscard]] virtual Now now() const noexcept = 0;
};

// The machine's clocks: CLOCK_MONOTONIC and CLOCK_REALTIME. Thread-safe.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] Now now() const noexcept override;
};

// A clock that stands still until told otherwise, for tests and simulations. One thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Now start = {}) noexcept : now_(start) {}

  [[nodiscard]] Now now() const noexcept override { return now_; }

  // Time passes: both clocks move.
  void advance(Nanos by) noexcept { now_.mono += by; }

  // The wall clock is set, forwards or backwards; no time passes.
  void step_wall(Nanos by) noexcept { now_.wall_offset += by; }

 private:
  Now now_;
};

}  // namespace sluice
