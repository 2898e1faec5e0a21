// The time of the load generator: the machine's, or virtual time that costs nothing.
#pragma once

#include <sluice/clock.h>

namespace sluice::cli {

// One thread.
class Timeline {
 public:
  Timeline() = default;
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;
  virtual ~Timeline() = default;

  [[nodiscard]] virtual Now now() const noexcept = 0;
  virtual void wait_until(MonoTime at) noexcept = 0;  // returns at once when that has passed
};

class VirtualTimeline final : public Timeline {
 public:
  [[nodiscard]] Now now() const noexcept override { return clock_.now(); }
  void wait_until(MonoTime at) noexcept override {
    if (at > now().mono) clock_.advance(at - now().mono);
  }

 private:
  ManualClock clock_;  // starts at 1970: windows begin with the run
};

class RealTimeline final : public Timeline {
 public:
  [[nodiscard]] Now now() const noexcept override { return clock_.now(); }
  void wait_until(MonoTime at) noexcept override;  // returns early when a signal arrives

 private:
  SystemClock clock_;
};

}  // namespace sluice::cli
