#include "rules/sync/schedule.h"

#include <algorithm>

namespace sluice::rules {
namespace {

// With any configuration, a job that fails at once must not become a busy loop, and no sum of an
// instant and a pause may overflow.
Nanos bounded(Nanos pause) {
  return std::clamp<Nanos>(pause, std::chrono::milliseconds{1}, std::chrono::hours{24 * 365});
}

ScheduleTimes bounded(const ScheduleTimes& times) {
  return {.interval = bounded(times.interval),
          .retry = bounded(times.retry),
          .retry_max = std::max(bounded(times.retry), bounded(times.retry_max)),
          .jitter_percent = std::min<std::uint32_t>(times.jitter_percent, 50)};
}

}  // namespace

Schedule::Schedule(const ScheduleTimes& times, std::uint64_t seed, MonoTime now) noexcept
    : times_(bounded(times)), random_(seed), next_(now + with_jitter(times_.interval)) {}

MonoTime Schedule::due() const noexcept {
  if (running_) return kNever;
  return asked_ ? MonoTime::min() : next_;
}

// Clears the request here and not at the end: a request during the run needs another run.
void Schedule::began() noexcept {
  running_ = true;
  asked_ = false;
}

void Schedule::ended(MonoTime now, bool success) noexcept {
  running_ = false;
  failures_ = success ? 0 : failures_ + 1;
  next_ = now + with_jitter(pause());
}

Nanos Schedule::pause() const noexcept {
  if (failures_ == 0) return times_.interval;
  Nanos pause = times_.retry;
  for (std::uint32_t doubled = 1; doubled < failures_; ++doubled) {
    if (pause >= times_.retry_max / 2) return times_.retry_max;
    pause *= 2;
  }
  return std::min(pause, times_.retry_max);
}

Nanos Schedule::with_jitter(Nanos pause) noexcept {
  const Nanos most = pause / 100 * times_.jitter_percent;
  const auto choices = static_cast<std::uint64_t>(2 * most.count()) + 1;
  return pause - most + Nanos{static_cast<std::int64_t>(random_.below(choices))};
}

}  // namespace sluice::rules
