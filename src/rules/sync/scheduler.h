// Runs a periodic job in a thread of its own; Schedule determines when.
//
// Thread-safe, but start() and stop() are for one thread at a time and not for the job itself.
#pragma once

#include "rules/sync/schedule.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace sluice::rules {

class Scheduler {
 public:
  using Job = std::function<bool()>;  // whether it succeeded; must not throw

  // The clock outlives the scheduler and is thread-safe.
  Scheduler(const ScheduleTimes& times, std::uint64_t seed, const Clock& clock, Job job);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  ~Scheduler() { stop(); }

  // Does nothing if it was started already. The first run is due one interval after construction.
  [[nodiscard]] Parsed<void> start();

  // Returns when the job does not run and will not run; at once, unless it is running.
  void stop() noexcept;

  // Before start(): requests a run at the start.
  void run_now();

  // Makes the thread read the clock again, for clocks that are not the machine's.
  void time_moved();

 private:
  void run(const std::stop_token& stopped);
  // With the lock locked: waits until a run is due or a stop is requested. Whether it is a run.
  [[nodiscard]] bool wait_for_run(std::unique_lock<std::mutex>& lock,
                                  const std::stop_token& stopped);

  const Clock& clock_;
  const Job job_;

  std::mutex mutex_;
  std::condition_variable_any wake_;
  // Guarded by the mutex.
  Schedule schedule_;
  std::uint64_t wakes_ = 0;

  std::jthread thread_;
};

}  // namespace sluice::rules
