// Worked examples, one algorithm at a time: what a reader would check by hand.
#include "support/raw_key.h"
#include "support/traffic.h"
#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sluice::core {
namespace {

using namespace std::chrono_literals;
using sluice::testing::compiled;

constexpr Nanos kNoon = 24h * 20'000 + 12h;  // some day of 2024, on the edge of every round period

Now noon(Nanos plus = 0s) { return sluice::testing::at((kNoon + plus).count()); }

Limit limit(Algorithm algorithm, std::uint64_t amount, Nanos period) {
  return {.algorithm = algorithm, .amount = amount, .period = period};
}

// Ten a second with a burst of three: three at once, then one every 100 ms.
TEST(Gcra, BurstThenOneEveryInterval) {
  Limit of = limit(Algorithm::gcra, 10, 1s);
  of.burst = 3;
  const CompiledLimit numbers = compiled(of);
  Cell cell;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const Decision decision = cell.decide(numbers, noon(), 1).decision;
    EXPECT_TRUE(decision.allowed());
    EXPECT_EQ(decision.remaining, 2 - i);
    EXPECT_EQ(decision.reset_after, (i + 1) * 100ms);
  }
  EXPECT_EQ(cell.decide(numbers, noon(), 1).decision.retry_after, 100ms);
  EXPECT_EQ(cell.decide(numbers, noon(50ms), 2).decision.retry_after, 150ms);
  EXPECT_TRUE(cell.decide(numbers, noon(100ms), 1).decision.allowed());
  EXPECT_FALSE(cell.decide(numbers, noon(100ms), 1).decision.allowed());
}

// An idle key regains exactly one burst: waiting longer never saves up more.
TEST(Gcra, IdleKeyRegainsExactlyOneBurst) {
  const CompiledLimit numbers = compiled(limit(Algorithm::gcra, 5, 1s));
  Cell cell;
  (void)cell.decide(numbers, noon(), 5);
  EXPECT_EQ(cell.decide(numbers, noon(1h), 0).decision.remaining, 5U);
  EXPECT_TRUE(cell.decide(numbers, noon(1h), 5).decision.allowed());
  EXPECT_FALSE(cell.decide(numbers, noon(1h), 1).decision.allowed());
}

// Strict pacing by default: the second request of an instant waits for its interval.
TEST(LeakyBucket, PacesStrictlyByDefault) {
  const CompiledLimit numbers = compiled(limit(Algorithm::leaky_bucket, 10, 1s));
  Cell cell;
  EXPECT_TRUE(cell.decide(numbers, noon(), 1).decision.allowed());
  EXPECT_EQ(cell.decide(numbers, noon(), 1).decision.retry_after, 100ms);
  EXPECT_FALSE(cell.decide(numbers, noon(99ms), 1).decision.allowed());
  EXPECT_TRUE(cell.decide(numbers, noon(100ms), 1).decision.allowed());
}

// A queue of 250 ms holds two more requests, 100 ms apart, and its room is never `remaining`.
TEST(LeakyBucket, QueueDelaysWhatItCannotPassAtOnce) {
  Limit of = limit(Algorithm::leaky_bucket, 10, 1s);
  of.max_delay = 250ms;
  const CompiledLimit numbers = compiled(of);
  Cell cell;
  EXPECT_EQ(cell.decide(numbers, noon(), 1).decision.delay, 0ms);
  const Decision second = cell.decide(numbers, noon(), 1).decision;
  EXPECT_TRUE(second.allowed());
  EXPECT_EQ(second.delay, 100ms);
  EXPECT_EQ(second.remaining, 0U);
  EXPECT_EQ(second.limit, 1U);
  EXPECT_EQ(cell.decide(numbers, noon(), 1).decision.delay, 200ms);
  const Decision fourth = cell.decide(numbers, noon(), 1).decision;
  EXPECT_EQ(fourth.verdict, Verdict::rejected);
  EXPECT_EQ(fourth.retry_after, 50ms);
  EXPECT_EQ(fourth.reset_after, 300ms);
}

// Tokens arrive all at once when a period of the wall clock ends, not continuously.
TEST(IntervalBucket, RefillsAtTheEndOfThePeriod) {
  Limit of = limit(Algorithm::token_bucket, 5, 1min);
  of.refill = Refill::interval;
  const CompiledLimit numbers = compiled(of);
  Cell cell;
  EXPECT_EQ(cell.decide(numbers, noon(10s), 5).decision.reset_after, 50s);
  EXPECT_EQ(cell.decide(numbers, noon(59s), 1).decision.retry_after, 1s);
  EXPECT_FALSE(cell.decide(numbers, noon(1min - 1ns), 1).decision.allowed());
  EXPECT_EQ(cell.decide(numbers, noon(1min), 0).decision.remaining, 5U);
}

TEST(FixedWindow, CountsFromZeroInEachWindow) {
  const CompiledLimit numbers = compiled(limit(Algorithm::fixed_window, 3, 1min));
  Cell cell;
  EXPECT_TRUE(cell.decide(numbers, noon(1min - 1ns), 3).decision.allowed());
  EXPECT_EQ(cell.decide(numbers, noon(1min - 1ns), 1).decision.retry_after, 1ns);
  EXPECT_TRUE(cell.decide(numbers, noon(1min), 3).decision.allowed());
}

// A small step back stays in the window that was current; a large one moves the count along.
TEST(FixedWindow, StepBackCountsNothingTwice) {
  const CompiledLimit numbers = compiled(limit(Algorithm::fixed_window, 3, 10s));
  Cell cell;
  ASSERT_TRUE(cell.decide(numbers, noon(), 3).decision.allowed());
  EXPECT_EQ(cell.decide(numbers, noon(-30s), 1).decision.retry_after, 40s);
  EXPECT_EQ(cell.decide(numbers, noon(-1h), 1).decision.retry_after, 10s);
  EXPECT_TRUE(cell.decide(numbers, noon(-1h + 10s), 3).decision.allowed());
}

TEST(FixedWindow, FirstRequestOpensTheWindow) {
  Limit of = limit(Algorithm::fixed_window, 3, 10s);
  of.align = Align::first_request;
  const CompiledLimit numbers = compiled(of);
  Cell cell;
  EXPECT_EQ(cell.decide(numbers, noon(3s), 1).decision.reset_after, 10s);
  EXPECT_EQ(cell.decide(numbers, noon(12s), 2).decision.reset_after, 1s);
  EXPECT_FALSE(cell.decide(numbers, noon(13s - 1ns), 1).decision.allowed());
  EXPECT_TRUE(cell.decide(numbers, noon(13s), 3).decision.allowed());
}

// An admission leaves the log exactly one period after it happened.
TEST(SlidingLog, WindowIsHalfOpen) {
  const CompiledLimit numbers = compiled(limit(Algorithm::sliding_log, 3, 1s));
  Cell cell;
  (void)cell.decide(numbers, noon(), 2);
  (void)cell.decide(numbers, noon(400ms), 1);
  EXPECT_EQ(cell.decide(numbers, noon(500ms), 1).decision.retry_after, 500ms);
  EXPECT_EQ(cell.decide(numbers, noon(500ms), 3).decision.retry_after, 900ms);
  EXPECT_FALSE(cell.decide(numbers, noon(1s - 1ns), 1).decision.allowed());
  EXPECT_EQ(cell.decide(numbers, noon(1s), 0).decision.remaining, 2U);
}

// A refund in the middle of the log leaves its neighbours alone.
TEST(SlidingLog, RefundGoesBackToItsOwnEntry) {
  const CompiledLimit numbers = compiled(limit(Algorithm::sliding_log, 6, 1s));
  Cell cell;
  (void)cell.decide(numbers, noon(), 1);
  const Receipt middle = cell.decide(numbers, noon(100ms), 2).receipt;
  (void)cell.decide(numbers, noon(200ms), 3);
  cell.refund(numbers, noon(300ms), middle, 2);
  EXPECT_EQ(cell.decide(numbers, noon(300ms), 0).decision.remaining, 2U);
  EXPECT_EQ(cell.decide(numbers, noon(1s), 0).decision.remaining, 3U);
  EXPECT_EQ(cell.decide(numbers, noon(1100ms), 0).decision.remaining, 3U);
  EXPECT_EQ(cell.decide(numbers, noon(1200ms), 0).decision.remaining, 6U);
}

// Forced charges push out the oldest entries, so the key stays full for a whole period.
TEST(SlidingLog, ForcedChargePushesOutTheOldest) {
  const CompiledLimit numbers = compiled(limit(Algorithm::sliding_log, 3, 1s));
  Cell cell;
  (void)cell.decide(numbers, noon(), 3);
  EXPECT_EQ(cell.charge(numbers, noon(500ms), 2).decision.remaining, 0U);
  EXPECT_EQ(cell.decide(numbers, noon(1s), 0).decision.remaining, 1U);
  EXPECT_EQ(cell.decide(numbers, noon(1500ms), 0).decision.remaining, 3U);
}

// A quarter into the window, three quarters of the previous eight count: six.
TEST(SlidingCounter, WeighsThePreviousWindow) {
  const CompiledLimit numbers = compiled(limit(Algorithm::sliding_counter, 10, 1min));
  Cell cell;
  (void)cell.decide(numbers, noon(), 8);
  const Decision quarter = cell.decide(numbers, noon(75s), 0).decision;
  EXPECT_EQ(quarter.remaining, 4U);
  EXPECT_EQ(quarter.reset_after, 45s);
  EXPECT_EQ(cell.decide(numbers, noon(75s), 7).decision.retry_after, 22s + 500ms);
  EXPECT_TRUE(cell.decide(numbers, noon(75s), 4).decision.allowed());
}

// Eight slices of one second and the one that is only partly in sight.
TEST(SlidingBuckets, PartlyExpiredSliceCountsInFull) {
  const CompiledLimit numbers = compiled(limit(Algorithm::sliding_buckets, 4, 8s));
  Cell cell;
  (void)cell.decide(numbers, noon(999ms), 4);
  EXPECT_EQ(cell.decide(numbers, noon(8999ms), 1).decision.retry_after, 1ms);
  EXPECT_EQ(cell.decide(numbers, noon(9s), 0).decision.remaining, 4U);
}

// Slices that a clock set back left in the future move to now, newest first.
TEST(SlidingBuckets, SlicesMoveWithAClockThatWasSetBack) {
  const CompiledLimit numbers = compiled(limit(Algorithm::sliding_buckets, 4, 8s));
  Cell cell;
  (void)cell.decide(numbers, noon(), 1);
  (void)cell.decide(numbers, noon(5s), 3);
  EXPECT_FALSE(cell.decide(numbers, noon(-1h), 1).decision.allowed());
  EXPECT_EQ(cell.decide(numbers, noon(-1h + 4s), 0).decision.remaining, 1U);
  EXPECT_EQ(cell.decide(numbers, noon(-1h + 9s), 0).decision.remaining, 4U);
}

TEST(Concurrency, SlotsComeBackWhenTheyAreReleased) {
  const CompiledLimit numbers = compiled(limit(Algorithm::concurrency, 2, 0s));
  Cell cell;
  const Receipt first = cell.decide(numbers, noon(), 1).receipt;
  (void)cell.decide(numbers, noon(), 1);
  const Decision refused = cell.decide(numbers, noon(), 1).decision;
  EXPECT_EQ(refused.verdict, Verdict::rejected);
  EXPECT_EQ(refused.retry_after, std::nullopt);
  EXPECT_EQ(refused.reset_after, 120s);
  cell.refund(numbers, noon(10s), first, 1);
  EXPECT_TRUE(cell.decide(numbers, noon(10s), 1).decision.allowed());
}

// An edited amount leaves requests in flight where they are; new ones wait for room.
TEST(Concurrency, LoweredAmountKeepsWhatIsInFlight) {
  const CompiledLimit five = compiled(limit(Algorithm::concurrency, 5, 0s));
  const CompiledLimit two = compiled(limit(Algorithm::concurrency, 2, 0s));
  Cell cell;
  std::vector<Receipt> leases;
  for (int i = 0; i < 5; ++i) leases.push_back(cell.decide(five, noon(), 1).receipt);
  cell.convert(five, two, noon(), OnChange::reset);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cell.decide(two, noon(), 0).decision.remaining, 0U);
    cell.refund(two, noon(), leases[static_cast<std::size_t>(i)], 1);
  }
  EXPECT_EQ(cell.decide(two, noon(), 0).decision.remaining, 0U);
  cell.refund(two, noon(), leases[3], 1);
  EXPECT_EQ(cell.decide(two, noon(), 0).decision.remaining, 1U);
}

}  // namespace
}  // namespace sluice::core
