#include "net/event_loop.h"

#include "net/net_fixture.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using testing::Loop;

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;

  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) std::abort();
    read_end = FileDescriptor{ends[0]};
    write_end = FileDescriptor{ends[1]};
  }
  void write(const std::string& text) const {
    ASSERT_EQ(::write(write_end.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
};

struct Counter {
  Watcher watcher{Callback<Events>::to<&Counter::on_events>(*this)};
  int told = 0;
  Events last{};
  void on_events(Events events) {
    ++told;
    last = events;
  }
};

TEST(EventLoop, TellsOfWhatWasPossibleBeforeAndThenOfEveryChangeOnce) {
  const Loop loop;
  const Pipe pipe;
  pipe.write("early");
  Counter counter;
  ASSERT_TRUE(counter.watcher.start(*loop, pipe.read_end.get()));
  loop->turn(0s);
  EXPECT_EQ(counter.told, 1);
  EXPECT_TRUE(counter.last.readable);
  EXPECT_FALSE(counter.last.hung_up);
  loop->turn(0s);
  EXPECT_EQ(counter.told, 1) << "nothing new, although nobody has read";
  pipe.write("more");
  loop->turn(0s);
  EXPECT_EQ(counter.told, 2);
}

TEST(EventLoop, TellsNothingOfWhatIsNoLongerWatched) {
  const Loop loop;
  const Pipe pipe;
  Counter counter;
  ASSERT_TRUE(counter.watcher.start(*loop, pipe.read_end.get()));
  pipe.write("x");
  counter.watcher.stop();
  counter.watcher.stop();
  loop->turn(0s);
  EXPECT_EQ(counter.told, 0);
}

TEST(EventLoop, RefusesADescriptorThatIsNone) {
  const Loop loop;
  Counter counter;
  EXPECT_FALSE(counter.watcher.start(*loop, 1'000'000));
}

// Ten descriptors are ready in one turn; the first that hears of it destroys all the others.
TEST(EventLoop, AWatcherMayDestroyOthersThatAreStillToBeTold) {
  struct Last {
    std::vector<std::unique_ptr<Last>>* all = nullptr;
    int* told = nullptr;
    Pipe pipe;
    Watcher watcher{Callback<Events>::to<&Last::on_events>(*this)};
    void on_events(Events /*events*/) {
      ++*told;
      std::erase_if(*all, [this](const auto& one) { return one.get() != this; });
    }
  };
  const Loop loop;
  int told = 0;
  std::vector<std::unique_ptr<Last>> all;
  for (int i = 0; i < 10; ++i) {
    auto& one = *all.emplace_back(std::make_unique<Last>());
    one.all = &all;
    one.told = &told;
    ASSERT_TRUE(one.watcher.start(*loop, one.pipe.read_end.get()));
    one.pipe.write("x");
  }
  loop->turn(0s);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(all.size(), 1U);
}

TEST(EventLoop, AWatcherMayDestroyItself) {
  struct Mayfly {
    std::unique_ptr<Mayfly>* self = nullptr;
    Watcher watcher{Callback<Events>::to<&Mayfly::on_events>(*this)};
    void on_events(Events /*events*/) const { self->reset(); }
  };
  const Loop loop;
  const Pipe pipe;
  auto mayfly = std::make_unique<Mayfly>();
  mayfly->self = &mayfly;
  ASSERT_TRUE(mayfly->watcher.start(*loop, pipe.read_end.get()));
  pipe.write("x");
  loop->turn(0s);
  EXPECT_EQ(mayfly, nullptr);
}

TEST(EventLoop, TakesMoreEventsThanFitIntoOneTurn) {
  const Loop loop;
  std::vector<std::unique_ptr<Pipe>> pipes;
  std::vector<std::unique_ptr<Counter>> counters;
  for (int i = 0; i < 600; ++i) {
    pipes.push_back(std::make_unique<Pipe>());
    pipes.back()->write("x");
    counters.push_back(std::make_unique<Counter>());
    ASSERT_TRUE(counters.back()->watcher.start(*loop, pipes.back()->read_end.get()));
  }
  for (int turn = 0; turn < 4; ++turn) loop->turn(0s);
  for (const auto& counter : counters) EXPECT_EQ(counter->told, 1);
}

// ---- time -------------------------------------------------------------------------------------

struct Alarm {
  Timer timer{Callback<>::to<&Alarm::ring>(*this)};
  int rung = 0;
  void ring() { ++rung; }
};

TEST(EventLoop, ReadsTheClockOncePerTurn) {
  ManualClock clock{Now{.mono = MonoTime{1h}, .wall_offset = 5s}};
  const auto loop = EventLoop::create(clock).value();
  clock.advance(1s);
  clock.step_wall(1s);
  EXPECT_EQ(loop->now().mono, MonoTime{1h});
  loop->turn(0s);
  EXPECT_EQ(loop->now().mono, MonoTime{1h + 1s});
  EXPECT_EQ(loop->now().wall_offset, Nanos{6s});
}

TEST(EventLoop, RunsTimersByItsClock) {
  ManualClock clock;
  const auto loop = EventLoop::create(clock).value();
  Alarm alarm;
  loop->set(alarm.timer, 10s);
  clock.advance(9s);
  loop->turn(0s);
  EXPECT_EQ(alarm.rung, 0);
  clock.advance(2s);
  loop->turn(0s);
  EXPECT_EQ(alarm.rung, 1);
  loop->set(alarm.timer, Nanos::max());
  clock.advance(24h * 365);
  loop->turn(0s);
  EXPECT_EQ(alarm.rung, 1);
}

// The only test of a real delay: a wait ends in time for a timer, and not before it.
TEST(EventLoop, WaitsNoLongerThanTheNextTimer) {
  const Loop loop;
  Alarm alarm;
  loop->turn(0s);
  const MonoTime before = loop->now().mono;
  loop->set(alarm.timer, 5ms);
  ASSERT_TRUE(loop.until([&] { return alarm.rung == 1; }));
  EXPECT_GE(loop->now().mono - before, 5ms);
}

// An answer that arrived in time counts, even if the thread was late.
TEST(EventLoop, TellsWatchersBeforeTimers) {
  struct Request {
    Timer deadline{Callback<>::to<&Request::on_deadline>(*this)};
    Watcher watcher{Callback<Events>::to<&Request::on_events>(*this)};
    bool timed_out = false;
    void on_deadline() { timed_out = true; }
    void on_events(Events /*events*/) { deadline.cancel(); }
  };
  ManualClock clock;
  const auto loop = EventLoop::create(clock).value();
  const Pipe pipe;
  Request request;
  ASSERT_TRUE(request.watcher.start(*loop, pipe.read_end.get()));
  loop->set(request.deadline, 10ms);
  pipe.write("answer");
  clock.advance(1s);
  loop->turn(0s);
  EXPECT_FALSE(request.timed_out);
}

// ---- tasks, hook ------------------------------------------------------------------------------

TEST(EventLoop, RunsTasksAtTheEndOfTheTurnAndTheirOwnTasksInTheNext) {
  struct Again {
    EventLoop& loop;
    int ran = 0;
    Task task{Callback<>::to<&Again::run>(*this)};
    explicit Again(EventLoop& in) : loop(in) {}
    void run() {
      if (++ran < 3) loop.run_soon(task);
    }
  };
  const Loop loop;
  Again again{*loop};
  loop->run_soon(again.task);
  loop->run_soon(again.task);
  loop->turn(1h);  // which does not wait, since there is a task
  EXPECT_EQ(again.ran, 1);
  loop->turn(1h);
  loop->turn(1h);
  EXPECT_EQ(again.ran, 3);
  loop->turn(0s);
  EXPECT_EQ(again.ran, 3);
  loop->run_soon(again.task);
  again.task.cancel();
  loop->turn(0s);
  EXPECT_EQ(again.ran, 3);
}

TEST(EventLoop, CallsItsHookOncePerTurnBeforeEverythingElse) {
  struct Order {
    std::string seen;
    Watcher watcher{Callback<Events>::to<&Order::on_events>(*this)};
    Timer timer{Callback<>::to<&Order::on_timer>(*this)};
    Task task{Callback<>::to<&Order::on_task>(*this)};
    void on_turn(Now /*now*/) { seen += 'h'; }
    void on_events(Events /*events*/) { seen += 'w'; }
    void on_timer() { seen += 't'; }
    void on_task() { seen += 's'; }
  };
  ManualClock clock;
  const auto loop = EventLoop::create(clock).value();
  const Pipe pipe;
  pipe.write("x");
  Order order;
  loop->set_turn_hook(Callback<Now>::to<&Order::on_turn>(order));
  ASSERT_TRUE(order.watcher.start(*loop, pipe.read_end.get()));
  loop->set(order.timer, 1ms);
  loop->run_soon(order.task);
  clock.advance(1s);
  loop->turn(0s);
  EXPECT_EQ(order.seen, "hwts");
}

// ---- other threads ----------------------------------------------------------------------------

// Every function runs once, in the loop's thread, in the order of its poster.
TEST(EventLoop, RunsWhatOtherThreadsPostInTheirOrder) {
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  const Loop loop;
  std::array<int, kThreads> next{};
  int ran = 0;
  bool in_order = true;
  const auto home = std::this_thread::get_id();
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          loop->post([&, t, i] {
            in_order = in_order && next[t]++ == i && std::this_thread::get_id() == home;
            if (++ran == kThreads * kEach) loop->stop();
          });
        }
      });
    }
    loop->run();
  }
  EXPECT_EQ(ran, kThreads * kEach);
  EXPECT_TRUE(in_order);
}

TEST(EventLoop, StopsFromAnotherThreadAlsoBeforeItRuns) {
  const Loop loop;
  loop->stop();
  loop->run();
  std::jthread stopper{[&] { loop->stop(); }};
  loop->run();
}

TEST(EventLoop, WhatIsPostedByThePostedRunsInALaterTurn) {
  const Loop loop;
  int ran = 0;
  loop->post([&] {
    ++ran;
    loop->post([&] { ++ran; });
  });
  ASSERT_TRUE(loop.until([&] { return ran == 2; }));
}

TEST(EventLoop, DropsWhatItNeverCameTo) {
  auto alive = std::make_shared<int>(1);
  {
    const Loop loop;
    loop->post([alive] {});
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace sluice::net
