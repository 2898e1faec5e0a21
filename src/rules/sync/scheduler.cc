#include "rules/sync/scheduler.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace sluice::rules {

Scheduler::Scheduler(const ScheduleTimes& times, std::uint64_t seed, const Clock& clock, Job job)
    : clock_(clock), job_(std::move(job)), schedule_(times, seed, clock.now().mono) {}

Parsed<void> Scheduler::start() {
  if (thread_.joinable()) return {};
  try {
    thread_ = std::jthread{[this](const std::stop_token& stopped) { run(stopped); }};
  } catch (const std::system_error& error) {
    return mistake(std::string{"cannot start a thread: "} + error.what(),
                   "raise the limit on threads");
  }
  return {};
}

void Scheduler::stop() noexcept {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void Scheduler::run_now() {
  const std::scoped_lock lock{mutex_};
  schedule_.ask();
  ++wakes_;
  wake_.notify_all();
}

void Scheduler::time_moved() {
  const std::scoped_lock lock{mutex_};
  ++wakes_;
  wake_.notify_all();
}

void Scheduler::run(const std::stop_token& stopped) {
  std::unique_lock lock{mutex_};
  while (wait_for_run(lock, stopped)) {
    schedule_.began();
    lock.unlock();
    const bool success = job_();
    lock.lock();
    schedule_.ended(clock_.now().mono, success);
  }
}

bool Scheduler::wait_for_run(std::unique_lock<std::mutex>& lock, const std::stop_token& stopped) {
  // Longer waits overflow in some clocks of the standard library; waking once an hour costs
  // nothing.
  constexpr Nanos kWaitMax = std::chrono::hours{1};
  while (!stopped.stop_requested()) {
    const MonoTime now = clock_.now().mono;
    const MonoTime due = schedule_.due();
    if (due <= now) return true;
    const std::uint64_t seen = wakes_;
    wake_.wait_for(lock, stopped, std::min(due - now, kWaitMax), [&] { return wakes_ != seen; });
  }
  return false;
}

}  // namespace sluice::rules
