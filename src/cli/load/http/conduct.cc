#include "cli/load/http/conduct.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <future>
#include <latch>
#include <memory>
#include <semaphore>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::cli {
namespace {

constexpr std::chrono::milliseconds kLookEvery{100};

// Beside the connections: loops, timers, standard streams.
constexpr rlim_t kOtherFiles = 32;

Parsed<void> allow_files(const HttpPlan& plan) {
  const rlim_t wanted = plan.connections + 4 * plan.threads + kOtherFiles;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted) return {};
  files.rlim_cur = std::min(wanted, files.rlim_max);
  if (files.rlim_cur < wanted || ::setrlimit(RLIMIT_NOFILE, &files) != 0) {
    return mistake(fmt::format("{} connections are more than this process may have open ({})",
                               plan.connections, files.rlim_max),
                   "use fewer --connections, or raise ulimit -n");
  }
  return {};
}

// Signals are for the thread that looks on: a thread begins with what the one that makes it blocks.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

using Drivers = std::vector<std::unique_ptr<LoadDriver>>;

LoadDriver::Live sum_of(const Drivers& drivers) noexcept {
  LoadDriver::Live sum;
  for (const auto& driver : drivers) {
    const LoadDriver::Live live = driver->live();
    sum.admitted += live.admitted;
    sum.rejected += live.rejected;
    sum.other += live.other;
  }
  return sum;
}

// What the threads of a run wait for, and how they tell that they are done.
struct Baton {
  explicit Baton(std::ptrdiff_t threads) : connected(threads) {}

  std::latch connected;
  std::promise<MonoTime> begin;
  std::shared_future<MonoTime> begins{begin.get_future()};
  std::counting_semaphore<> done{0};
};

void drive(LoadDriver& driver, Baton& baton) {
  driver.connect_all();
  baton.connected.count_down();
  driver.run(baton.begins.get());
  baton.done.release();
}

// False: the system has no room for as many. Started threads wait for the baton.
bool start_threads(const Drivers& drivers, Baton& baton, std::vector<std::jthread>& threads) {
  const SignalsBlocked blocked;
  try {
    for (const auto& driver : drivers) {
      threads.emplace_back([&baton, &driver] { drive(*driver, baton); });
    }
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

// True: it was told to end the run.
bool look_on(const Drivers& drivers, Baton& baton, MonoTime begin, const Clock& clock,
             const RunWatcher& watch) {
  std::size_t ended = 0;
  bool interrupted = false;
  while (ended < drivers.size()) {
    if (baton.done.try_acquire_for(kLookEvery)) {
      ++ended;
      continue;
    }
    if (interrupted || watch({clock.now().mono - begin, sum_of(drivers)})) continue;
    interrupted = true;
    for (const auto& driver : drivers) driver->stop();
  }
  return interrupted;
}

HttpRun summed_up(const HttpPlan& plan, const Drivers& drivers, Nanos took, bool interrupted) {
  HttpRun run{.tally = drivers.front()->tally(), .interrupted = interrupted};
  for (std::size_t i = 1; i < drivers.size(); ++i) run.tally.add(drivers[i]->tally());
  run.offered_for = interrupted ? std::min(plan.duration, took) : plan.duration;
  run.elapsed = std::max(run.offered_for, run.tally.last_over);
  return run;
}

}  // namespace

Parsed<HttpRun> conduct(const HttpPlan& plan, const net::SocketAddress& address, const Clock& clock,
                        const RunWatcher& watch) {
  if (const auto allowed = allow_files(plan); !allowed) return tl::unexpected(allowed.error());
  Drivers drivers;
  for (std::size_t i = 0; i < plan.threads; ++i) {
    auto driver = LoadDriver::create(plan, address, i, clock);
    if (!driver) return tl::unexpected(driver.error());
    drivers.push_back(*std::move(driver));
  }
  Baton baton{static_cast<std::ptrdiff_t>(plan.threads)};
  std::vector<std::jthread> threads;
  if (!start_threads(drivers, baton, threads)) {
    for (const auto& driver : drivers) driver->stop();
    baton.begin.set_value(clock.now().mono);
    return mistake(fmt::format("the system has no room for {} threads", plan.threads),
                   "use fewer --threads");
  }
  baton.connected.wait();
  const MonoTime begin = clock.now().mono;
  baton.begin.set_value(begin);
  const bool interrupted = look_on(drivers, baton, begin, clock, watch);
  threads.clear();
  return summed_up(plan, drivers, clock.now().mono - begin, interrupted);
}

}  // namespace sluice::cli
