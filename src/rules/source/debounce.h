// When to act on a burst of events: once it is over, but not later than some time after it began.
//
// Saving a file is several events, and acting on the first would read half of it. While a file is
// still open for writing the burst is not over: a writer may pause for longer than `quiet` between
// two parts of a file. Pure; one thread.
#pragma once

#include <sluice/time.h>

#include <algorithm>
#include <chrono>

namespace sluice::rules {

struct DebounceTimes {
  Nanos quiet = std::chrono::milliseconds{100};  // without an event: the burst is over
  Nanos at_most = std::chrono::seconds{1};       // since the first one: some writers never pause
  // The same while a file is open for writing. Some writers never close their file.
  Nanos open_quiet = std::chrono::seconds{5};
  Nanos open_at_most = std::chrono::seconds{30};
};

class Debounce {
 public:
  explicit Debounce(DebounceTimes times) noexcept : times_(times) {}

  // `is_open`: after this event some file is open for writing.
  void event(MonoTime now, bool is_open = false) noexcept {
    // The open file is complete: from here on the shorter times count.
    if (!pending_ || (is_open_ && !is_open)) first_ = now;
    pending_ = true;
    is_open_ = is_open;
    last_ = now;
  }

  [[nodiscard]] bool pending() const noexcept { return pending_; }

  // When to act; kNever if nothing happened.
  [[nodiscard]] MonoTime due() const noexcept {
    if (!pending_) return kNever;
    if (is_open_) return std::min(last_ + times_.open_quiet, first_ + times_.open_at_most);
    return std::min(last_ + times_.quiet, first_ + times_.at_most);
  }

  // Whether to act now. If so, the burst is forgotten.
  [[nodiscard]] bool take(MonoTime now) noexcept {
    if (now < due()) return false;
    pending_ = false;
    is_open_ = false;
    return true;
  }

  static constexpr MonoTime kNever = MonoTime::max();

 private:
  DebounceTimes times_;
  bool pending_ = false;
  bool is_open_ = false;
  MonoTime first_;
  MonoTime last_;
};

}  // namespace sluice::rules
