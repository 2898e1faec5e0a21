#include "rules/sync/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice::rules {
namespace {

using namespace std::chrono_literals;

constexpr auto kDeadline = 20s;
constexpr ScheduleTimes kHourly{
    .interval = 1h, .retry = 1min, .retry_max = 4h, .jitter_percent = 0};

// Stands still until told otherwise. Thread-safe.
class SharedClock final : public Clock {
 public:
  [[nodiscard]] Now now() const noexcept override { return {.mono = MonoTime{Nanos{now_.load()}}}; }
  void advance(Nanos by) { now_ += by.count(); }

 private:
  std::atomic<std::int64_t> now_ = Nanos{24h}.count();
};

// A job that can be held and whose runs can be waited for.
class HeldJob {
 public:
  bool operator()() {
    std::unique_lock lock{mutex_};
    twice_at_once_ = twice_at_once_ || running_;
    running_ = true;
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    running_ = false;
    ++ended_;
    changed_.notify_all();
    return succeeds_;
  }
  void hold(bool held) {
    const std::scoped_lock lock{mutex_};
    held_ = held;
    changed_.notify_all();
  }
  void succeed(bool succeeds) {
    const std::scoped_lock lock{mutex_};
    succeeds_ = succeeds;
  }
  [[nodiscard]] bool began(int times) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, kDeadline, [&] { return begun_ >= times; });
  }
  [[nodiscard]] bool ended(int times) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, kDeadline, [&] { return ended_ >= times; });
  }
  [[nodiscard]] int runs() {
    const std::scoped_lock lock{mutex_};
    return begun_;
  }
  [[nodiscard]] bool was_twice_at_once() {
    const std::scoped_lock lock{mutex_};
    return twice_at_once_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool running_ = false;
  bool succeeds_ = true;
  bool twice_at_once_ = false;
  int begun_ = 0;
  int ended_ = 0;
};

class SchedulerWith : public ::testing::Test {
 protected:
  void start() { ASSERT_TRUE(scheduler_.start()); }
  void pass(Nanos time) {
    clock_.advance(time);
    scheduler_.time_moved();
  }

  SharedClock clock_;
  HeldJob job_;
  Scheduler scheduler_{kHourly, 1, clock_, [this] { return job_(); }};
};

TEST_F(SchedulerWith, RunsEachTimeTheIntervalHasPassed) {
  start();
  for (int run = 1; run <= 5; ++run) {
    pass(1h);
    ASSERT_TRUE(job_.ended(run)) << run;
    // Served after the run, so its end has been noted when this one has ended.
    scheduler_.run_now();
    ASSERT_TRUE(job_.ended(++run));
    scheduler_.stop();
    EXPECT_EQ(job_.runs(), run) << "without time passing nothing more is due";
    start();
  }
}

TEST_F(SchedulerWith, DoesNotRunBeforeTheIntervalHasPassed) {
  start();
  pass(59min);
  scheduler_.stop();
  EXPECT_EQ(job_.runs(), 0);
  start();
  pass(1min);
  EXPECT_TRUE(job_.ended(1));
}

TEST_F(SchedulerWith, AFailureIsRetriedSooner) {
  job_.succeed(false);
  start();
  pass(1h);
  ASSERT_TRUE(job_.ended(1));
  scheduler_.stop();  // by now the end is noted, and the time of the retry with it
  start();
  pass(1min);
  EXPECT_TRUE(job_.ended(2));
}

TEST_F(SchedulerWith, AskingBeforeTheStartRunsAtTheStart) {
  scheduler_.run_now();
  EXPECT_EQ(job_.runs(), 0);
  start();
  EXPECT_TRUE(job_.ended(1));
}

TEST_F(SchedulerWith, AskingOftenDuringARunRunsOnceMore) {
  job_.hold(true);
  start();
  scheduler_.run_now();
  ASSERT_TRUE(job_.began(1));
  for (int i = 0; i < 10; ++i) scheduler_.run_now();
  job_.hold(false);
  ASSERT_TRUE(job_.ended(2));
  scheduler_.stop();
  EXPECT_EQ(job_.runs(), 2);
}

TEST_F(SchedulerWith, ARunThatTakesTenIntervalsIsFollowedByAPause) {
  job_.hold(true);
  start();
  scheduler_.run_now();
  ASSERT_TRUE(job_.began(1));
  pass(10h);
  job_.hold(false);
  ASSERT_TRUE(job_.ended(1));
  scheduler_.stop();
  start();
  pass(59min);
  scheduler_.stop();
  EXPECT_EQ(job_.runs(), 1);
}

TEST_F(SchedulerWith, NeverRunsTwiceAtOnceWhoeverAsks) {
  start();
  std::vector<std::jthread> askers;
  for (int asker = 0; asker < 4; ++asker) {
    askers.emplace_back([this] {
      for (int i = 0; i < 500; ++i) {
        scheduler_.run_now();
        pass(30min);
      }
    });
  }
  askers.clear();
  const int runs = job_.runs();
  scheduler_.run_now();
  EXPECT_TRUE(job_.ended(std::max(runs, 1)));
  scheduler_.stop();
  EXPECT_FALSE(job_.was_twice_at_once());
}

TEST_F(SchedulerWith, StopsAtOnceWhileItWaits) {
  start();
  const auto before = std::chrono::steady_clock::now();
  scheduler_.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s) << "it waited for the next run";
}

TEST_F(SchedulerWith, StoppingWaitsForTheRunAndThenNothingRuns) {
  job_.hold(true);
  start();
  scheduler_.run_now();
  ASSERT_TRUE(job_.began(1));
  scheduler_.run_now();  // would be the next one
  std::atomic<bool> stopped = false;
  std::jthread stopper{[&] {
    scheduler_.stop();
    EXPECT_TRUE(job_.ended(1));
    stopped = true;
  }};
  EXPECT_FALSE(stopped) << "the job still runs";
  job_.hold(false);
  stopper.join();
  const int runs = job_.runs();
  pass(10h);
  scheduler_.run_now();
  EXPECT_EQ(job_.runs(), runs);
}

TEST_F(SchedulerWith, StartingAndStoppingTwiceIsNoMatter) {
  scheduler_.stop();
  start();
  start();
  scheduler_.run_now();
  EXPECT_TRUE(job_.ended(1));
  scheduler_.stop();
  scheduler_.stop();
}

}  // namespace
}  // namespace sluice::rules
