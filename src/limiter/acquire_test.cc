// Waiting for one's turn: on virtual time with an event loop, in real milliseconds with threads.
#include <sluice/core/limit_text.h>
#include <sluice/limiter.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr Now kStart{.mono = MonoTime{Nanos{1h}}, .wall_offset = Nanos{1'700'000'000s}};
constexpr Nanos kForever = Nanos::max();

Limit slots(std::uint64_t amount) {
  return {.algorithm = Algorithm::concurrency, .amount = amount, .slot_ttl = 1min};
}

Limit queue(std::string_view text, Nanos longest) {
  Limit limit = core::parse_limit(text, Algorithm::leaky_bucket).value();
  limit.max_delay = longest;
  return limit;
}

// ---- an event loop on virtual time ------------------------------------------------------------

class Loop final : public Timer {
 public:
  ManualClock clock{kStart};

  void after(Nanos delay, std::function<void()> then) override {
    due_.emplace(clock.now().mono + delay, std::move(then));
  }

  [[nodiscard]] Nanos passed() const { return clock.now().mono - kStart.mono; }

  // What is due, in order; of what is due at the same time, in the order in which it was asked for.
  void run_for(Nanos duration) {
    const MonoTime end = clock.now().mono + duration;
    while (!due_.empty() && due_.begin()->first <= end) {
      clock.advance(due_.begin()->first - clock.now().mono);
      const std::function<void()> then = std::move(due_.begin()->second);
      due_.erase(due_.begin());
      then();
    }
    clock.advance(end - clock.now().mono);
  }

 private:
  std::multimap<MonoTime, std::function<void()>> due_;
};

struct Answered {
  std::string who;
  Nanos at{0};
  Verdict verdict{};

  friend bool operator==(const Answered&, const Answered&) = default;
};

void PrintTo(const Answered& answered, std::ostream* out) {
  *out << answered.who << " at " << answered.at.count() << " ns, verdict "
       << static_cast<int>(answered.verdict);
}

struct Stage {
  Loop loop;
  Limiter limiter;
  std::vector<Answered> answers;

  explicit Stage(std::string_view limit) : limiter(limit, {.clock = &loop.clock}) {}
  explicit Stage(const Limit& limit) : limiter(limit, {.clock = &loop.clock}) {}

  Pending acquire(std::string who, Nanos timeout = kForever, Cost cost = 1,
                  std::string key = "key") {
    return limiter.acquire(std::move(key), timeout, cost, loop,
                           [this, who = std::move(who)](const Decision& decision) {
                             answers.push_back({who, loop.passed(), decision.verdict});
                           });
  }
};

constexpr Verdict kYes = Verdict::allowed;
constexpr Verdict kNo = Verdict::rejected;

TEST(AcquireInALoop, AnswersAtOnceWhenNobodyHasToWait) {
  Stage stage{"2/1s"};
  stage.acquire("a");
  stage.acquire("b");
  EXPECT_EQ(stage.answers, (std::vector<Answered>{{"a", 0ns, kYes}, {"b", 0ns, kYes}}));
}

TEST(AcquireInALoop, ServesThoseWhoWaitInTheOrderInWhichTheyCame) {
  Stage stage{"1/1s"};
  for (const char* who : {"a", "b", "c", "d"}) stage.acquire(who);
  EXPECT_EQ(stage.answers.size(), 1U);
  stage.loop.run_for(10s);
  EXPECT_EQ(
      stage.answers,
      (std::vector<Answered>{{"a", 0s, kYes}, {"b", 1s, kYes}, {"c", 2s, kYes}, {"d", 3s, kYes}}));
}

TEST(AcquireInALoop, LetsNoCheapRequestOvertakeAnExpensiveOne) {
  Stage stage{"4/1s"};
  stage.acquire("a", kForever, 4);
  stage.acquire("b", kForever, 3);
  stage.loop.run_for(500ms);
  stage.acquire("c", kForever, 1);
  stage.loop.run_for(10s);
  EXPECT_EQ(stage.answers,
            (std::vector<Answered>{{"a", 0s, kYes}, {"b", 750ms, kYes}, {"c", 1s, kYes}}));
}

TEST(AcquireInALoop, KeepsKeysApart) {
  Stage stage{"1/1s"};
  stage.acquire("a", kForever, 1, "one");
  stage.acquire("b", kForever, 1, "one");
  stage.acquire("c", kForever, 1, "other");
  EXPECT_EQ(stage.answers, (std::vector<Answered>{{"a", 0s, kYes}, {"c", 0s, kYes}}));
}

TEST(AcquireInALoop, RefusesAtOnceWhenTheWaitIsKnownToBeTooLong) {
  Stage stage{"1/1s"};
  stage.acquire("a");
  stage.acquire("b", 1s - 1ns);
  EXPECT_EQ(stage.answers.back(), (Answered{"b", 0s, kNo}));
  stage.acquire("c", 1s);
  stage.loop.run_for(1s);
  EXPECT_EQ(stage.answers.back(), (Answered{"c", 1s, kYes})) << "just in time";
}

TEST(AcquireInALoop, RefusesThoseBehindOthersWhenTheirTimeIsOver) {
  Stage stage{"1/1s"};
  for (const char* who : {"a", "b", "c"}) stage.acquire(who);
  stage.acquire("d", 2500ms);
  stage.acquire("e");
  stage.loop.run_for(10s);
  EXPECT_EQ(
      stage.answers,
      (std::vector<Answered>{
          {"a", 0s, kYes}, {"b", 1s, kYes}, {"c", 2s, kYes}, {"d", 2s, kNo}, {"e", 3s, kYes}}))
      << "d is first at 2 s, and knows then that half a second is too little";
}

TEST(AcquireInALoop, RefusesThoseWhoseTurnNeverCame) {
  Stage stage{"1/1s"};
  stage.acquire("a");
  stage.acquire("b");
  stage.acquire("c", 500ms);
  stage.loop.run_for(10s);
  EXPECT_EQ(stage.answers,
            (std::vector<Answered>{{"a", 0s, kYes}, {"c", 500ms, kNo}, {"b", 1s, kYes}}));
}

TEST(AcquireInALoop, RefusesWhatCanNeverPassAtOnceEvenBehindOthers) {
  Stage stage{"2/1s"};
  stage.acquire("a", kForever, 3);
  EXPECT_EQ(stage.answers.back(), (Answered{"a", 0s, Verdict::never}));
  stage.acquire("b", kForever, 2);
  stage.acquire("c");
  stage.acquire("d", kForever, 3);
  EXPECT_EQ(stage.answers.back(), (Answered{"d", 0s, Verdict::never}));
}

TEST(AcquireInALoop, NegativeTimeoutsAreNone) {
  Stage stage{"1/1s"};
  stage.acquire("a", Nanos::min());
  stage.acquire("b", Nanos::min());
  EXPECT_EQ(stage.answers, (std::vector<Answered>{{"a", 0s, kYes}, {"b", 0s, kNo}}));
}

TEST(AcquireInALoop, CancelEndsTheWaitWithoutAnAnswerOrACharge) {
  Stage stage{"1/1s"};
  stage.acquire("a");
  Pending first = stage.acquire("b");
  Pending second = stage.acquire("c");
  stage.acquire("d");
  second.cancel();
  first.cancel();
  stage.loop.run_for(10s);
  EXPECT_EQ(stage.answers, (std::vector<Answered>{{"a", 0s, kYes}, {"d", 1s, kYes}}));
}

TEST(AcquireInALoop, CancelIsHarmlessAfterTheAnswer) {
  Stage stage{"1/1s"};
  Pending a = stage.acquire("a");
  a.cancel();
  Pending{}.cancel();
  EXPECT_EQ(stage.answers.size(), 1U);
}

TEST(AcquireInALoop, AnswersARequestThatAQueueHoldsWhenItMayGo) {
  Stage stage{queue("1/1s", 5s)};
  stage.acquire("a");
  stage.acquire("b");
  stage.acquire("c");
  Pending d = stage.acquire("d");
  d.cancel();
  stage.loop.run_for(10s);
  EXPECT_EQ(stage.answers,
            (std::vector<Answered>{{"a", 0s, kYes}, {"b", 1s, kYes}, {"c", 2s, kYes}}));
}

TEST(AcquireInALoop, RefusesWhatAQueueWouldHoldForTooLongAndChargesNothing) {
  Stage stage{queue("1/1s", 5s)};
  stage.acquire("a");
  stage.acquire("b");
  stage.acquire("c", 1500ms);
  EXPECT_EQ(stage.answers.back(), (Answered{"c", 0s, kNo}));
  stage.acquire("d", 2s);
  stage.loop.run_for(10s);
  EXPECT_EQ(stage.answers.back(), (Answered{"d", 2s, kYes})) << "c left its place";
}

TEST(AcquireInALoop, AsksAgainWhereNobodyCanKnowWhenThereWillBeRoom) {
  Stage stage{slots(1)};
  const Ticket busy = stage.limiter.reserve("key").ticket;
  stage.acquire("a", 1s);
  stage.acquire("b", 100ms);
  stage.loop.run_for(500ms);
  EXPECT_EQ(stage.answers, (std::vector<Answered>{{"b", 100ms, kNo}}));
  stage.limiter.refund(busy);
  stage.loop.run_for(20ms);
  ASSERT_EQ(stage.answers.size(), 2U);
  EXPECT_EQ(stage.answers.back().who, "a");
  EXPECT_EQ(stage.answers.back().verdict, kYes);
  stage.acquire("c", 1s);
  stage.loop.run_for(2s);
  EXPECT_EQ(stage.answers.back(), (Answered{"c", 1520ms, kNo}));
}

TEST(AcquireInALoop, MayBeCalledFromAnAnswer) {
  Stage stage{"1/1s"};
  std::vector<Nanos> at;
  std::function<void(const Decision&)> again = [&](const Decision&) {
    at.push_back(stage.loop.passed());
    if (at.size() < 4) (void)stage.limiter.acquire("key", kForever, 1, stage.loop, again);
  };
  (void)stage.limiter.acquire("key", kForever, 1, stage.loop, again);
  stage.loop.run_for(10s);
  EXPECT_EQ(at, (std::vector<Nanos>{0s, 1s, 2s, 3s}));
}

class Counter final : public Observer {
 public:
  std::atomic<int> allowed{0};
  std::atomic<int> refused{0};

  void decided(std::string_view, std::string_view, Cost,
               const Decision& decision) noexcept override {
    ++(decision.allowed() ? allowed : refused);
  }
};

TEST(AcquireInALoop, TellsTheObserverOnceForEachAnswer) {
  Loop loop;
  Counter counter;
  Limiter limiter{"1/1s", {.clock = &loop.clock, .observer = &counter}};
  const auto ignore = [](const Decision&) {};
  for (int i = 0; i < 3; ++i) (void)limiter.acquire("key", kForever, 1, loop, ignore);
  (void)limiter.acquire("key", 1500ms, 1, loop, ignore);
  loop.run_for(10s);
  EXPECT_EQ(counter.allowed, 3);
  EXPECT_EQ(counter.refused, 1);
}

// ---- threads ----------------------------------------------------------------------------------

using Steady = std::chrono::steady_clock;

TEST(Acquire, WaitsUntilThereIsRoom) {
  Limiter limiter{"1/20ms"};
  const Steady::time_point start = Steady::now();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(limiter.acquire("key", 1min).allowed());
  EXPECT_GE(Steady::now() - start, 60ms - 1ms);
}

TEST(Acquire, RefusesAtOnceWhatIsKnownToTakeTooLongOrCanNeverPass) {
  Limiter limiter{"1/1h"};
  const Steady::time_point start = Steady::now();
  EXPECT_TRUE(limiter.acquire("key", kForever).allowed());
  const Decision decision = limiter.acquire("key", 30min);
  EXPECT_EQ(decision.verdict, kNo);
  EXPECT_TRUE(decision.retry_after);
  EXPECT_EQ(limiter.acquire("key", 0ns).verdict, kNo);
  EXPECT_EQ(limiter.acquire("key", Nanos::min()).verdict, kNo);
  EXPECT_EQ(limiter.acquire("key", kForever, 2).verdict, Verdict::never);
  EXPECT_LT(Steady::now() - start, 1min);
}

TEST(Acquire, HoldsARequestAsAQueueSays) {
  Limiter limiter{queue("1/20ms", 1s)};
  const Steady::time_point start = Steady::now();
  for (int i = 0; i < 3; ++i) (void)limiter.acquire("key", 1min);
  EXPECT_GE(Steady::now() - start, 40ms - 1ms);
  EXPECT_TRUE(limiter.check("key").allowed());
  EXPECT_EQ(limiter.acquire("key", 1ms).verdict, kNo) << "it would be held for longer";
}

TEST(Acquire, TellsTheObserverOnce) {
  Counter counter;
  Limiter limiter{"1/5ms", {.observer = &counter}};
  for (int i = 0; i < 3; ++i) (void)limiter.acquire("key", 1min);
  EXPECT_EQ(counter.allowed, 3);
  EXPECT_EQ(counter.refused, 0);
}

TEST(Acquire, TimesOutWhileOthersAreBeforeIt) {
  Limiter limiter{slots(1)};
  const Ticket busy = limiter.reserve("key").ticket;
  std::atomic<int> refused{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] { refused += limiter.acquire("key", 40ms).verdict == kNo; });
    }
  }
  EXPECT_EQ(refused, 3);
  limiter.refund(busy);
  EXPECT_TRUE(limiter.acquire("key", 0ns).allowed()) << "the line is empty again";
}

TEST(Acquire, PollsForASlotInFlight) {
  Limiter limiter{slots(1)};
  const Ticket busy = limiter.reserve("key").ticket;
  std::optional<Decision> decision;
  {
    const std::jthread waiter{[&] { decision = limiter.acquire("key", 1min); }};
    limiter.refund(busy);
  }
  EXPECT_TRUE(decision->allowed());
}

// Their order is tested above; that they keep it in a line shared with threads, below.
TEST(Acquire, ServesThreadsOfOneKeyOneAfterTheOther) {
  Limiter limiter{"1/10ms"};
  ASSERT_TRUE(limiter.allow("key"));
  constexpr int kThreads = 8;
  std::mutex mutex;
  std::vector<Steady::time_point> served;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        EXPECT_TRUE(limiter.acquire("key", 1min).allowed());
        const std::lock_guard guard{mutex};
        served.push_back(Steady::now());
      });
    }
  }
  ASSERT_EQ(served.size(), std::size_t{kThreads});
  EXPECT_GE(served.back() - served.front(), (kThreads - 1) * 10ms - 5ms);
  EXPECT_TRUE(limiter.acquire("key", 1min).allowed()) << "nobody is left in the line";
}

// Threads and loops wait in the same line.
TEST(Acquire, ComesAfterThoseWhoWaitedBefore) {
  class RealLoop final : public Timer {
   public:
    void after(Nanos delay, std::function<void()> then) override {
      const std::lock_guard guard{mutex_};
      threads_.emplace_back([delay, then = std::move(then)] {
        std::this_thread::sleep_for(delay);
        then();
      });
    }

   private:
    std::mutex mutex_;
    std::vector<std::jthread> threads_;
  };
  Limiter limiter{"1/20ms"};
  std::atomic<int> served{0};
  const Steady::time_point start = Steady::now();
  {
    RealLoop loop;
    for (int i = 0; i < 3; ++i) {
      (void)limiter.acquire("key", 1s, 1, loop,
                            [&](const Decision& decision) { served += decision.allowed(); });
    }
    EXPECT_TRUE(limiter.acquire("key", 1min).allowed());
    EXPECT_GE(Steady::now() - start, 60ms - 1ms) << "three were before it";
  }
  EXPECT_EQ(served, 3);
}

}  // namespace
}  // namespace sluice
