// When to act on a burst of events: once it is over, but not later than some time after it began.
//
// Saving a file is several events, and acting on the first would read half of it. Pure; one thread.
#pragma once

#include <sluice/time.h>

#include <algorithm>
#include <chrono>

namespace sluice::rules {

struct DebounceTimes {
  Nanos quiet = std::chrono::milliseconds{50};  // without an event, and the burst is over
  Nanos at_most = std::chrono::seconds{1};      // since the first one: some writers never pause
};

class Debounce {
 public:
  explicit Debounce(DebounceTimes times) noexcept : times_(times) {}

  void event(MonoTime now) noexcept {
    if (!pending_) first_ = now;
    pending_ = true;
    last_ = now;
  }

  // When to act; kNever if nothing happened.
  [[nodiscard]] MonoTime due() const noexcept {
    if (!pending_) return kNever;
    return std::min(last_ + times_.quiet, first_ + times_.at_most);
  }

  // Whether to act now. If so, the burst is forgotten.
  [[nodiscard]] bool take(MonoTime now) noexcept {
    if (now < due()) return false;
    pending_ = false;
    return true;
  }

  static constexpr MonoTime kNever = MonoTime::max();

 private:
  DebounceTimes times_;
  bool pending_ = false;
  MonoTime first_;
  MonoTime last_;
};

}  // namespace sluice::rules
