#include "net/timer_wheel.h"

#include "support/property.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kTick = TimerWheel::kTick;
const MonoTime kStart{123456789s};

struct Alarm {
  Timer timer{Callback<>::to<&Alarm::ring>(*this)};
  int rung = 0;
  void ring() { ++rung; }
};

TEST(TimerWheel, RunsATimerOnceAtItsDeadlineAndNotBefore) {
  TimerWheel wheel{kStart};
  Alarm alarm;
  wheel.set(alarm.timer, kStart + 100ms);
  wheel.advance(kStart + 100ms - 1ns);
  EXPECT_EQ(alarm.rung, 0);
  EXPECT_TRUE(alarm.timer.is_set());
  wheel.advance(kStart + 100ms + kTick);
  EXPECT_EQ(alarm.rung, 1);
  EXPECT_FALSE(alarm.timer.is_set());
  wheel.advance(kStart + 1h);
  EXPECT_EQ(alarm.rung, 1);
}

TEST(TimerWheel, IsExactHoweverFarTheDeadline) {
  for (const Nanos delay : {Nanos{1ms}, Nanos{1s}, Nanos{10min}, Nanos{24h}, Nanos{24h} * 365}) {
    TimerWheel wheel{kStart};
    Alarm alarm;
    wheel.set(alarm.timer, kStart + delay);
    for (auto next = wheel.next(); next; next = wheel.next()) {
      EXPECT_EQ(alarm.rung, 0);
      wheel.advance(*next);
      if (alarm.rung == 0) continue;
      EXPECT_GE(*next, kStart + delay);
      EXPECT_LT(*next, kStart + delay + kTick);
    }
    EXPECT_EQ(alarm.rung, 1);
  }
}

TEST(TimerWheel, TakesTheLastInstantThereIs) {
  TimerWheel wheel{kStart};
  Alarm alarm;
  wheel.set(alarm.timer, MonoTime::max());
  wheel.advance(kStart + 24h * 10000);
  EXPECT_EQ(alarm.rung, 0);
  ASSERT_TRUE(wheel.next());
  EXPECT_GT(*wheel.next(), kStart);
}

TEST(TimerWheel, RunsWhatIsOverdueWithTheNextTick) {
  TimerWheel wheel{kStart};
  Alarm alarm;
  wheel.set(alarm.timer, MonoTime{});
  wheel.advance(kStart);
  EXPECT_EQ(alarm.rung, 0);
  wheel.advance(kStart + kTick);
  EXPECT_EQ(alarm.rung, 1);
}

// A request that goes on puts its deadline off again and again; only the last one counts.
TEST(TimerWheel, ADeadlinePutOffRunsAtTheLaterOne) {
  TimerWheel wheel{kStart};
  Alarm alarm;
  for (int second = 0; second < 100; ++second) {
    const MonoTime now = kStart + std::chrono::seconds{second};
    wheel.advance(now);
    wheel.set(alarm.timer, now + 5s);
  }
  EXPECT_EQ(alarm.rung, 0);
  wheel.advance(kStart + 104s - 1ns);
  EXPECT_EQ(alarm.rung, 0);
  wheel.advance(kStart + 104s + kTick);
  EXPECT_EQ(alarm.rung, 1);
}

TEST(TimerWheel, ADeadlineBroughtForwardRunsAtTheEarlierOne) {
  TimerWheel wheel{kStart};
  Alarm alarm;
  wheel.set(alarm.timer, kStart + 1h);
  wheel.set(alarm.timer, kStart + 1s);
  wheel.advance(kStart + 1s + kTick);
  EXPECT_EQ(alarm.rung, 1);
  wheel.advance(kStart + 2h);
  EXPECT_EQ(alarm.rung, 1);
}

TEST(TimerWheel, ACancelledTimerDoesNotRunAndMayBeSetAgain) {
  TimerWheel wheel{kStart};
  Alarm alarm;
  wheel.set(alarm.timer, kStart + 1s);
  alarm.timer.cancel();
  wheel.advance(kStart + 2s);
  EXPECT_EQ(alarm.rung, 0);
  wheel.set(alarm.timer, kStart + 3s);
  wheel.advance(kStart + 4s);
  EXPECT_EQ(alarm.rung, 1);
}

TEST(TimerWheel, ATimerMayVanishWhileSet) {
  TimerWheel wheel{kStart};
  auto alarm = std::make_unique<Alarm>();
  wheel.set(alarm->timer, kStart + 1s);
  alarm.reset();
  wheel.advance(kStart + 2s);
  EXPECT_FALSE(wheel.next());
}

// What runs may end the objects of other timers of the same tick.
TEST(TimerWheel, ATimerMayDestroyItsNeighbours) {
  struct Half {
    Timer timer{Callback<>::to<&Half::ring>(*this)};
    std::unique_ptr<Half>* other = nullptr;
    int* rung = nullptr;
    void ring() const {
      ++*rung;
      other->reset();
    }
  };
  TimerWheel wheel{kStart};
  int rung = 0;
  auto first = std::make_unique<Half>();
  auto second = std::make_unique<Half>();
  first->other = &second;
  second->other = &first;
  first->rung = second->rung = &rung;
  wheel.set(first->timer, kStart + 1s);
  wheel.set(second->timer, kStart + 1s);
  wheel.advance(kStart + 2s);
  EXPECT_EQ(rung, 1);
}

TEST(TimerWheel, ATimerThatSetsItselfAgainRunsOncePerTick) {
  struct Ticker {
    TimerWheel& wheel;
    Timer timer{Callback<>::to<&Ticker::ring>(*this)};
    int rung = 0;
    void ring() {
      ++rung;
      wheel.set(timer, MonoTime{});
    }
  };
  TimerWheel wheel{kStart};
  Ticker ticker{.wheel = wheel};
  ticker.ring();
  wheel.advance(kStart + 10 * kTick);
  EXPECT_EQ(ticker.rung, 11);
}

TEST(TimerWheel, ATimeThatGoesBackChangesNothing) {
  TimerWheel wheel{kStart};
  Alarm alarm;
  wheel.set(alarm.timer, kStart + 1s);
  wheel.advance(kStart - 1h);
  EXPECT_EQ(alarm.rung, 0);
  wheel.advance(kStart + 2s);
  EXPECT_EQ(alarm.rung, 1);
}

// ---- against a sorted map ---------------------------------------------------------------------

// The obvious wheel: who is due when, in order.
class Model {
 public:
  explicit Model(std::int64_t tick) : tick_(tick) {}

  void set(std::size_t id, MonoTime deadline) {
    cancel(id);
    const std::int64_t nanos = deadline.time_since_epoch().count();
    const std::int64_t due = (nanos + kTick.count() - 1) / kTick.count();
    due_.emplace(std::max(due, tick_ + 1), id);
  }
  void cancel(std::size_t id) {
    std::erase_if(due_, [id](const auto& entry) { return entry.second == id; });
  }
  // Sorted by tick, then by number.
  std::vector<std::pair<std::int64_t, std::size_t>> advance(MonoTime now) {
    tick_ = std::max(tick_, now.time_since_epoch().count() / kTick.count());
    std::vector<std::pair<std::int64_t, std::size_t>> ran;
    while (!due_.empty() && due_.begin()->first <= tick_) {
      ran.emplace_back(*due_.begin());
      due_.erase(due_.begin());
    }
    std::sort(ran.begin(), ran.end());
    return ran;
  }
  std::optional<std::int64_t> first() const {
    return due_.empty() ? std::nullopt : std::optional{due_.begin()->first};
  }
  bool is_set(std::size_t id) const {
    return std::any_of(due_.begin(), due_.end(),
                       [id](const auto& entry) { return entry.second == id; });
  }

 private:
  std::int64_t tick_;
  std::multimap<std::int64_t, std::size_t> due_;
};

struct Numbered {
  std::vector<std::size_t>* ran = nullptr;
  std::size_t id = 0;
  Timer timer{Callback<>::to<&Numbered::ring>(*this)};
  void ring() const { ran->push_back(id); }
};

// Delays of every size, so that every level takes part.
MonoTime some_time_after(MonoTime now) {
  const int bits = *rc::gen::inRange(0, 50);
  return now + Nanos{*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << bits)};
}

// The same timers run, tick by tick, as a sorted map would have it; the wheel never sleeps past
// one, and knows which are set.
TEST(TimerWheel, BehavesLikeASortedMap) {
  testing::check_property(200, [] {
    MonoTime now = some_time_after(MonoTime{});
    TimerWheel wheel{now};
    Model model{now.time_since_epoch().count() / kTick.count()};
    std::vector<std::size_t> ran;
    std::vector<std::unique_ptr<Numbered>> timers;
    for (std::size_t id = 0; id < 8; ++id) {
      timers.push_back(std::make_unique<Numbered>());
      timers.back()->ran = &ran;
      timers.back()->id = id;
    }
    for (int step = 0; step < 60; ++step) {
      const auto id = *rc::gen::inRange<std::size_t>(0, timers.size());
      switch (*rc::gen::inRange(0, 4)) {
        case 0: {
          const MonoTime deadline = some_time_after(now);
          wheel.set(timers[id]->timer, deadline);
          model.set(id, deadline);
          break;
        }
        case 1:
          timers[id]->timer.cancel();
          model.cancel(id);
          break;
        case 2: now = some_time_after(now); break;
        default:  // as a loop does that sleeps for as long as the wheel lets it
          now = std::max(now, wheel.next().value_or(now));
      }
      ran.clear();
      wheel.advance(now);
      const auto expected = model.advance(now);
      RC_ASSERT(ran.size() == expected.size());
      std::map<std::size_t, std::int64_t> due_of;
      for (const auto& [due, number] : expected) due_of[number] = due;
      for (std::size_t i = 0; i < ran.size(); ++i) {
        RC_ASSERT(due_of.contains(ran[i]));
        if (i > 0) RC_ASSERT(due_of[ran[i - 1]] <= due_of[ran[i]]);
      }
      if (const auto first = model.first()) {
        RC_ASSERT(wheel.next().has_value());
        RC_ASSERT(wheel.next()->time_since_epoch().count() / kTick.count() <= *first);
      }
      for (const auto& timer : timers) {
        RC_ASSERT(timer->timer.is_set() == model.is_set(timer->id));
      }
    }
  });
}

}  // namespace
}  // namespace sluice::net
