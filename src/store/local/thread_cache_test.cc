// A worker's memory says what the store would, and its leases stay within their bounds.
#include "store/local/thread_cache.h"

#include "base/digest.h"
#include "support/property.h"
#include "support/traffic.h"
#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;
using testing::between;
using testing::check_property;
using testing::compiled;
using testing::Envelope;
using testing::Subject;

constexpr std::int64_t kStart = std::int64_t{1'700'000'000} * 1'000'000'000;
constexpr ThreadCache::Use kRemember{.remember_refusals = true, .thread_leases = false};
constexpr ThreadCache::Use kLeases{.remember_refusals = true, .thread_leases = true};

Now after(Nanos passed) { return at(kStart + passed.count()); }

Limit bucket(std::uint64_t amount, Nanos period) {
  return {.algorithm = Algorithm::token_bucket, .amount = amount, .period = period};
}

// With blocks of all sizes: a log that grows needs one of each.
constexpr std::size_t kMemory = std::size_t{64} << 20U;

// A store with one limit and one key.
struct Stage {
  explicit Stage(const Limit& limit)
      : store(LocalStore::open({.mapping = {.memory = kMemory}}, after(0ns)).value()),
        number(store->use(limit, after(0ns)).value()) {}

  [[nodiscard]] Check check(Cost cost = 1, std::string_view key = "key") const {
    return {.key = KeyDigest{store->secret()}.add(1, key).finish(), .limit = number, .cost = cost};
  }

  std::unique_ptr<LocalStore> store;
  LimitNumber number;
};

// ---- refused-until ----------------------------------------------------------------------------

class EverySubject : public ::testing::TestWithParam<Subject> {};

// Repeated at random within milliseconds, where memory answers, and later, where it must not.
TEST_P(EverySubject, IsAnsweredAsIfThereWereNoMemory) {
  std::uint64_t remembered = 0;
  check_property(30, [&] {
    const Limit& limit = GetParam().limit;
    Stage with{limit};
    Stage without{limit};
    ThreadCache worker{*with.store, 1};
    Nanos now{0};
    const auto step =
        static_cast<std::uint64_t>(std::max<std::int64_t>(limit.period.count() / 10, 30'000'000));
    for (int i = 0; i < 60; ++i) {
      now += Nanos{static_cast<std::int64_t>(*between(0, *between(0, 4) == 0 ? step : 2'000'000))};
      const Cost cost = static_cast<Cost>(*between(0, 9) == 0 ? *between(0, 3) : 1);
      const Decision expected = without.store->decide(without.check(cost), after(now)).decision;
      RC_ASSERT(worker.decide(with.check(cost), kRemember, after(now)).decision == expected);
    }
    remembered += worker.counters().refused_again;
  });
  const bool knows_when = GetParam().limit.algorithm != Algorithm::concurrency;
  const bool slow = core::capacity(GetParam().limit) * 1ms < 100ms &&
                    (GetParam().limit.period == 0ns || GetParam().limit.period >= 1s) &&
                    GetParam().limit.amount < 1000;
  if (GetParam().limit.count_rejected || !knows_when) {
    EXPECT_EQ(remembered, 0U);
  } else if (slow) {
    EXPECT_GT(remembered, 0U) << "the memory was not tested";
  }
}

INSTANTIATE_TEST_SUITE_P(ThreadCache, EverySubject, ::testing::ValuesIn(testing::all_subjects()),
                         [](const auto& subject) { return subject.param.name; });

TEST(ThreadCache, RemembersARefusalForTwentyFiveMilliseconds) {
  Stage stage{bucket(1, 1h)};
  ThreadCache worker{*stage.store, 1};
  ASSERT_TRUE(worker.decide(stage.check(), kRemember, after(0ns)).decision.allowed());
  const Decision first = worker.decide(stage.check(), kRemember, after(0ns)).decision;
  EXPECT_EQ(first.retry_after, Nanos{1h});
  EXPECT_EQ(worker.counters().refused_again, 0U);

  const Decision again = worker.decide(stage.check(), kRemember, after(25ms - 1ns)).decision;
  EXPECT_EQ(again.retry_after, 1h - 25ms + 1ns);
  EXPECT_EQ(worker.counters().refused_again, 1U);
  (void)worker.decide(stage.check(), kRemember, after(25ms));
  EXPECT_EQ(worker.counters().refused_again, 1U);
}

TEST(ThreadCache, AsksAgainTheNanosecondAUnitIsBack) {
  Stage stage{bucket(1, 10ms)};
  ThreadCache worker{*stage.store, 1};
  ASSERT_TRUE(worker.decide(stage.check(), kRemember, after(0ns)).decision.allowed());
  ASSERT_FALSE(worker.decide(stage.check(), kRemember, after(0ns)).decision.allowed());
  EXPECT_FALSE(worker.decide(stage.check(), kRemember, after(10ms - 1ns)).decision.allowed());
  EXPECT_TRUE(worker.decide(stage.check(), kRemember, after(10ms)).decision.allowed());
}

TEST(ThreadCache, RemembersOnlyRequestsOfCostOneOfTheSameKeyAndLimit) {
  Stage stage{bucket(2, 1h)};
  const LimitNumber other = stage.store->use(bucket(3, 1h), after(0ns)).value();
  ThreadCache worker{*stage.store, 1};
  ASSERT_TRUE(worker.decide(stage.check(2), kRemember, after(0ns)).decision.allowed());
  (void)worker.decide(stage.check(2), kRemember, after(0ns));  // refused, of cost 2
  (void)worker.decide(stage.check(2), kRemember, after(0ns));
  (void)worker.decide(stage.check(1), kRemember, after(0ns));
  EXPECT_EQ(worker.counters().refused_again, 0U);
  EXPECT_TRUE(worker.decide(stage.check(1, "other"), kRemember, after(0ns)).decision.allowed());
  EXPECT_TRUE(worker.decide(stage.check(0), kRemember, after(0ns)).decision.allowed());
  (void)worker.decide(stage.check(1), kRemember, after(0ns));
  EXPECT_EQ(worker.counters().refused_again, 1U);
  Check under_another = stage.check(1);
  under_another.limit = other;
  EXPECT_TRUE(worker.decide(under_another, kRemember, after(0ns)).decision.allowed());
}

TEST(ThreadCache, CountsEveryDeniedRequestThatIsToBeCounted) {
  Limit limit = bucket(2, 1s);
  limit.count_rejected = true;
  Stage stage{limit};
  ThreadCache worker{*stage.store, 1};
  for (int i = 0; i < 5; ++i) (void)worker.decide(stage.check(), kRemember, after(0ns));
  EXPECT_EQ(worker.counters().refused_again, 0U);
}

TEST(ThreadCache, ForgetsRefusalsThatARefundAResetOrANewLimitMayHaveEnded) {
  Stage stage{bucket(1, 1h)};
  ThreadCache worker{*stage.store, 1};
  const Answer taken = worker.decide(stage.check(), kRemember, after(0ns));
  const auto refused = [&] {
    return !worker.decide(stage.check(), kRemember, after(0ns)).decision.allowed();
  };
  ASSERT_TRUE(refused());
  stage.store->refund(stage.check(), taken.charge, after(0ns));
  EXPECT_FALSE(refused());
  ASSERT_TRUE(refused());
  EXPECT_TRUE(stage.store->forget(stage.check().key));
  EXPECT_FALSE(refused());
  ASSERT_TRUE(refused());
  (void)stage.store->use(bucket(7, 1h), after(0ns));
  const std::uint64_t before = worker.counters().refused_again;
  ASSERT_TRUE(refused());
  EXPECT_EQ(worker.counters().refused_again, before);
}

TEST(ThreadCache, TrustsNoMemoryOfTheFuture) {
  Stage stage{bucket(1, 1h)};
  ThreadCache worker{*stage.store, 1};
  (void)worker.decide(stage.check(), kRemember, after(1ms));
  (void)worker.decide(stage.check(), kRemember, after(1ms));
  (void)worker.decide(stage.check(), kRemember, after(0ns));
  EXPECT_EQ(worker.counters().refused_again, 0U);
}

// ---- leases -----------------------------------------------------------------------------------

TEST(ThreadCache, TakesAheadWhatFlowsInWithinAMillisecond) {
  EXPECT_EQ(ThreadCache::lease_size(bucket(1'000'000, 1s), 4), 1000U);
  EXPECT_EQ(ThreadCache::lease_size(bucket(1'000'000, 1s), 1000), 250U)
      << "a fair share of a quarter";
}

TEST(ThreadCache, LeavesLimitsThatCannotBeSharedOutExact) {
  EXPECT_EQ(ThreadCache::lease_size(bucket(100, 1s), 4), 0U);
  Limit limit = bucket(1'000'000, 1s);
  limit.count_rejected = true;
  EXPECT_EQ(ThreadCache::lease_size(limit, 4), 0U);
  limit = {.algorithm = Algorithm::leaky_bucket, .amount = 1'000'000, .period = 1s};
  limit.burst = 1'000'000;
  EXPECT_GT(ThreadCache::lease_size(limit, 4), 0U);
  limit.max_delay = 1s;
  EXPECT_EQ(ThreadCache::lease_size(limit, 4), 0U);
  EXPECT_EQ(ThreadCache::lease_size({.algorithm = Algorithm::concurrency, .amount = 1'000'000}, 4),
            0U);
  EXPECT_EQ(ThreadCache::lease_size({.algorithm = Algorithm::fixed_window,
                                     .amount = 1'000'000,
                                     .align = Align::calendar,
                                     .unit = CalendarUnit::day},
                                    4),
            0U);
}

TEST(ThreadCache, SpendsALeaseForAMillisecondAndGivesTheRestBack) {
  Stage stage{bucket(1'000'000, 1s)};
  ThreadCache worker{*stage.store, 4};
  const auto left_in_store = [&](Nanos now) {
    return stage.store->decide(stage.check(0), after(now)).decision.remaining;
  };
  const Decision first = worker.decide(stage.check(), kLeases, after(0ns)).decision;
  EXPECT_EQ(first.remaining, 999'999U) << "its own lease is not missing";
  EXPECT_EQ(left_in_store(0ns), 998'999U);
  EXPECT_EQ(worker.decide(stage.check(3), kLeases, after(0ns)).decision.remaining, 999'996U);
  EXPECT_EQ(worker.counters().leased, 1U);
  EXPECT_EQ(left_in_store(0ns), 998'999U) << "the store is not asked";
  (void)worker.decide(stage.check(), kLeases, after(1ms - 1ns));
  EXPECT_EQ(worker.counters().leased, 2U);
  (void)worker.decide(stage.check(), kLeases, after(1ms));
  EXPECT_EQ(worker.counters().leased, 2U);
  EXPECT_EQ(left_in_store(1ms), 998'999U) << "one used, a thousand taken anew";
}

TEST(ThreadCache, LendsNothingToACostThatCanNeverPass) {
  Stage stage{bucket(1'000'000, 1s)};
  ThreadCache worker{*stage.store, 4};
  constexpr Cost kMost = std::numeric_limits<Cost>::max();
  for (const Cost cost : {1'000'001U, kMost - 999, kMost}) {
    EXPECT_EQ(worker.decide(stage.check(cost), kLeases, after(0ns)).decision.verdict,
              Verdict::never)
        << cost;
  }
}

TEST(ThreadCache, SpendsNoLeaseOfAKeyThatWasForgotten) {
  Stage stage{bucket(1'000'000, 1s)};
  ThreadCache worker{*stage.store, 4};
  (void)worker.decide(stage.check(), kLeases, after(0ns));
  ASSERT_TRUE(stage.store->forget(stage.check().key));
  (void)worker.decide(stage.check(), kLeases, after(0ns));
  EXPECT_EQ(worker.counters().leased, 0U);
  EXPECT_EQ(stage.store->decide(stage.check(0), after(0ns)).decision.remaining, 998'999U);
}

std::vector<Subject> large_subjects() {
  Limit interval = bucket(50'000, 5ms);
  interval.refill = Refill::interval;
  return {{.name = "token_bucket", .limit = bucket(1'000'000, 1s)},
          {.name = "token_bucket_uneven", .limit = bucket(700'001, 330ms)},
          {.name = "interval", .limit = interval},
          {.name = "fixed_window",
           .limit = {.algorithm = Algorithm::fixed_window, .amount = 10'000, .period = 10ms}},
          {.name = "sliding_log",
           .limit = {.algorithm = Algorithm::sliding_log, .amount = 4000, .period = 20ms}},
          {.name = "sliding_counter",
           .limit = {.algorithm = Algorithm::sliding_counter, .amount = 10'000, .period = 10ms}},
          {.name = "sliding_buckets",
           .limit = {.algorithm = Algorithm::sliding_buckets, .amount = 8000, .period = 16ms}}};
}

class Leases : public ::testing::TestWithParam<Subject> {};

// Random traffic of several workers on virtual time, beside a cell that is charged with exactly
// what they admit.
TEST_P(Leases, StayWithinTheBoundAndRefuseNoEarlierThanTheySay) {
  check_property(40, [&] {
    const Limit& limit = GetParam().limit;
    constexpr unsigned kWorkers = 3;
    Stage stage{limit};
    std::vector<ThreadCache> workers(kWorkers, ThreadCache{*stage.store, kWorkers});
    core::Cell exact;
    const core::CompiledLimit numbers = compiled(limit);
    const std::uint64_t missing =
        std::uint64_t{ThreadCache::lease_size(limit, kWorkers)} * kWorkers;
    RC_ASSERT(missing > 0);
    const std::uint64_t largest = *between(1, core::capacity(limit) / 20);
    Envelope admitted;
    Nanos now{0};
    for (int i = 0; i < 300; ++i) {
      now +=
          Nanos{static_cast<std::int64_t>(*between(0, *between(0, 9) == 0 ? 3'000'000 : 300'000))};
      const Cost cost = static_cast<Cost>(*between(1, largest));
      ThreadCache& worker = workers[*between(0, kWorkers - 1)];
      const std::uint64_t left = testing::peek(exact, numbers, kStart + now.count()).remaining;
      if (worker.decide(stage.check(cost), kLeases, after(now)).decision.allowed()) {
        (void)exact.charge(numbers, after(now), cost);
        admitted.admit(kStart + now.count(), cost);
      } else {
        // A bucket's refund out of order gives back less than it took, so there it is not exact.
        RC_ASSERT(left < cost + missing || core::is_bucket(limit.algorithm));
      }
    }
    const Nanos window = limit.period - ThreadCache::kLeaseFor;
    RC_ASSERT(admitted.densest(window.count()) <= core::most_admitted(limit));
  });
}

INSTANTIATE_TEST_SUITE_P(ThreadCache, Leases, ::testing::ValuesIn(large_subjects()),
                         [](const auto& subject) { return subject.param.name; });

// A thousandth of the limit is used; what is taken ahead and not spent must not use up the rest.
TEST(ThreadCache, LeasesThatNobodySpendsDoNotUseTheLimitUp) {
  Stage stage{bucket(1'000'000, 1s)};
  std::vector<ThreadCache> workers(2, ThreadCache{*stage.store, 2});
  for (Nanos now{0}; now < 5s; now += 1ms) {
    for (ThreadCache& worker : workers) {
      ASSERT_TRUE(worker.decide(stage.check(), kLeases, after(now)).decision.allowed())
          << now.count();
    }
  }
}

}  // namespace
}  // namespace sluice::store
