#include "cli/load/http/alarm.h"

#include <chrono>
#include <sys/timerfd.h>

namespace sluice::cli {

Alarm::Alarm(net::Callback<> on_due) noexcept
    : on_due_(on_due), watcher_(net::Callback<net::Events>::to<&Alarm::on_events>(*this)) {}

bool Alarm::start(net::EventLoop& loop) noexcept {
  descriptor_ = FileDescriptor{::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
  return descriptor_ && watcher_.start(loop, descriptor_.get()).has_value();
}

// Every expiry is an edge of its own, so the counter need not be read.
void Alarm::set(MonoTime at) noexcept {
  if (at == at_) return;
  at_ = at;
  const Nanos since_boot = at.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
  itimerspec when{};
  when.it_value = {.tv_sec = seconds.count(), .tv_nsec = (since_boot - seconds).count()};
  (void)::timerfd_settime(descriptor_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Alarm::on_events(net::Events /*events*/) {
  at_ = {};
  on_due_();
}

}  // namespace sluice::cli
