#include "cli/load/timeline.h"

#include <ctime>

namespace sluice::cli {

void RealTimeline::wait_until(MonoTime at) noexcept {
  const Nanos since_boot = at.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
  const timespec target{.tv_sec = seconds.count(), .tv_nsec = (since_boot - seconds).count()};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &target, nullptr);
}

}  // namespace sluice::cli
