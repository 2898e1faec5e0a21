// The most that any window of one period can hold: reached by an adversary, passed by nobody.
#include "support/property.h"
#include "support/traffic.h"
#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sluice::core {
namespace {

using namespace std::chrono_literals;
using sluice::testing::at;
using sluice::testing::Beat;
using sluice::testing::between;
using sluice::testing::check_property;
using sluice::testing::compiled;
using sluice::testing::Envelope;
using sluice::testing::kYear;
using sluice::testing::later;
using sluice::testing::scale_of;
using sluice::testing::Subject;
using sluice::testing::traffic;

// The window that the bound speaks of; for calendars the shortest such unit.
std::int64_t window_of(const Limit& limit) {
  if (limit.unit == CalendarUnit::day) return Nanos{23h}.count();
  if (limit.unit == CalendarUnit::month) return Nanos{28 * 24h}.count();
  if (limit.algorithm == Algorithm::concurrency) return limit.slot_ttl.value_or(60s).count();
  return limit.period.count();
}

// An instant at which windows, slices, periods and days of New York meet.
std::int64_t seam(const Limit& limit) {
  if (limit.unit == CalendarUnit::day) {
    return Nanos{std::chrono::days{30 * 365}}.count() + Nanos{5h}.count();
  }
  if (limit.unit == CalendarUnit::month) return Nanos{std::chrono::days{365}}.count();
  const std::int64_t width = window_of(limit);
  return 30 * kYear / width * width;
}

// Takes all there is, as early as there is any, until the given instant.
void take_greedily(Cell& cell, const CompiledLimit& limit, std::int64_t now, std::int64_t until,
                   Envelope& released) {
  while (now < until) {
    const Decision decision = cell.decide(limit, at(now), 1).decision;
    if (decision.allowed()) {
      released.admit(now + decision.delay.count(), 1);
      continue;
    }
    if (!decision.retry_after) return;  // concurrency: nobody gives back
    ASSERT_GT(*decision.retry_after, 0ns);
    now += decision.retry_after->count();
  }
}

std::uint64_t densest_of(const Limit& limit, std::int64_t start, bool open_first) {
  const CompiledLimit numbers = compiled(limit);
  const std::int64_t window = window_of(limit);
  Envelope released;
  Cell cell;
  if (open_first && cell.decide(numbers, at(start - window + 1), 1).decision.allowed()) {
    released.admit(start - window + 1, 1);
  }
  take_greedily(cell, numbers, start, start + window, released);
  return released.densest(window);
}

std::vector<Subject> countable_subjects() {
  std::vector<Subject> subjects = sluice::testing::all_subjects();
  std::erase_if(subjects, [](const Subject& subject) {
    return subject.limit.amount > 1000 || subject.limit.count_rejected;
  });
  return subjects;
}

class Bounds : public ::testing::TestWithParam<Subject> {};
INSTANTIATE_TEST_SUITE_P(, Bounds, ::testing::ValuesIn(countable_subjects()),
                         [](const auto& test) { return test.param.name; });

// Starting at, or one nanosecond before, a seam, perhaps with one request a window earlier,
// somebody who takes all there is gets exactly the most the design admits to.
TEST_P(Bounds, AnAdversaryReachesTheBoundExactly) {
  const Limit& limit = GetParam().limit;
  std::uint64_t densest = 0;
  for (const std::int64_t start : {seam(limit), seam(limit) - 1}) {
    for (const bool open_first : {false, true}) {
      densest = std::max(densest, densest_of(limit, start, open_first));
    }
  }
  EXPECT_EQ(densest, most_admitted(limit));
}

// Random and greedy at once: random waits and costs, the told waits, everything that remains.
void expect_bound(const Limit& limit) {
  const CompiledLimit numbers = compiled(limit);
  std::int64_t now = *sluice::testing::starts(window_of(limit));
  Cell cell;
  Envelope released;
  Nanos told{0};
  for (const Beat& beat : *traffic(scale_of(limit), 60)) {
    const std::uint64_t how = *between(0, 3);
    now = later(now, how == 0 ? told.count() : beat.gap);
    const Decision seen = sluice::testing::peek(cell, numbers, now);
    const auto rest = static_cast<Cost>(std::max<std::uint64_t>(seen.remaining, 1));
    const Cost cost = how <= 1 ? rest : beat.cost;
    const Decision decision = cell.decide(numbers, at(now), cost).decision;
    told = decision.retry_after.value_or(Nanos{0});
    if (decision.allowed()) released.admit(now + decision.delay.count(), cost);
  }
  RC_ASSERT(released.densest(window_of(limit)) <= most_admitted(limit));
}

TEST_P(Bounds, NoHistoryPassesTheBound) {
  check_property(400, [] { expect_bound(GetParam().limit); });
}

TEST(BoundsOfRandomLimits, NoBucketPassesItsBound) {
  check_property(4000, [] { expect_bound(*sluice::testing::bucket_limits()); });
}

TEST(BoundsOfRandomLimits, NoIntervalBucketPassesItsBound) {
  check_property(4000, [] { expect_bound(*sluice::testing::interval_limits()); });
}

TEST(BoundsOfRandomLimits, NoWindowPassesItsBound) {
  check_property(4000, [] {
    Limit limit = *sluice::testing::limits_of(Algorithm::fixed_window);
    if (*rc::gen::arbitrary<bool>()) limit.align = Align::first_request;
    expect_bound(limit);
  });
}

TEST(BoundsOfRandomLimits, NoSlidingAlgorithmPassesItsBound) {
  check_property(4000, [] {
    expect_bound(*sluice::testing::limits_of(*rc::gen::element(
        Algorithm::sliding_log, Algorithm::sliding_counter, Algorithm::sliding_buckets)));
  });
}

// Aligned windows of the sliding counter never hold more than the amount.
TEST(BoundsOfRandomLimits, SlidingCounterKeepsEveryAlignedWindow) {
  check_property(1000, [] {
    const Limit limit = *sluice::testing::limits_of(Algorithm::sliding_counter);
    const CompiledLimit numbers = compiled(limit);
    std::int64_t now = *sluice::testing::starts(limit.period.count());
    std::int64_t window = -1;
    std::uint64_t admitted = 0;
    Cell cell;
    for (const Beat& beat : *traffic(scale_of(limit), 60)) {
      now = later(now, beat.gap);
      if (now / limit.period.count() != window) admitted = 0;
      window = now / limit.period.count();
      if (cell.decide(numbers, at(now), beat.cost).decision.allowed()) admitted += beat.cost;
      RC_ASSERT(admitted <= limit.amount);
    }
  });
}

// The table of the design, with the numbers in place.
TEST(BoundsOfRandomLimits, TableOfTheDesign) {
  const auto bound = [](const Limit& limit) { return most_admitted(limit); };
  EXPECT_EQ(bound({.algorithm = Algorithm::token_bucket, .amount = 10, .period = 1s}), 19U);
  EXPECT_EQ(bound({.algorithm = Algorithm::gcra, .amount = 10, .period = 1s, .burst = 4}), 13U);
  EXPECT_EQ(bound({.algorithm = Algorithm::leaky_bucket, .amount = 10, .period = 1s}), 10U);
  EXPECT_EQ(bound({.algorithm = Algorithm::token_bucket,
                   .amount = 10,
                   .period = 1s,
                   .burst = 4,
                   .refill = Refill::interval}),
            8U);
  EXPECT_EQ(bound({.algorithm = Algorithm::token_bucket,
                   .amount = 10,
                   .period = 1s,
                   .burst = 40,
                   .refill = Refill::interval}),
            50U);
  EXPECT_EQ(bound({.algorithm = Algorithm::fixed_window, .amount = 10, .period = 1s}), 20U);
  EXPECT_EQ(bound({.algorithm = Algorithm::fixed_window,
                   .amount = 10,
                   .period = 1s,
                   .align = Align::first_request}),
            19U);
  EXPECT_EQ(bound({.algorithm = Algorithm::sliding_log, .amount = 10, .period = 1s}), 10U);
  EXPECT_EQ(bound({.algorithm = Algorithm::sliding_counter, .amount = 10, .period = 1s}), 19U);
  EXPECT_EQ(bound({.algorithm = Algorithm::sliding_buckets, .amount = 10, .period = 1s}), 10U);
  EXPECT_EQ(bound({.algorithm = Algorithm::concurrency, .amount = 10}), 10U);
}

// Slices cost throughput: a saturating client gets k / (k + 1) of its rate, and no less.
TEST(BoundsOfRandomLimits, SaturatedSlicesDeliverTheirShare) {
  for (const std::int64_t slices : {1, 2, 4, 8, 16}) {
    Limit limit{.algorithm = Algorithm::sliding_buckets, .amount = 48, .period = 48s};
    limit.bucket_width = limit.period / slices;
    const CompiledLimit numbers = compiled(limit);
    std::uint64_t admitted = 0;
    Cell cell;
    std::int64_t now = Nanos{1h}.count();
    const std::int64_t end = now + Nanos{48s}.count() * 40;
    while (now < end) {
      const Decision decision = cell.decide(numbers, at(now), 1).decision;
      if (decision.allowed()) ++admitted;
      if (decision.allowed()) continue;
      ASSERT_GT(decision.retry_after.value(), 0ns);
      now += decision.retry_after->count();
    }
    const auto share = static_cast<std::uint64_t>(std::int64_t{40} * 48 * slices / (slices + 1));
    EXPECT_GE(admitted, share) << slices << " slices";
    EXPECT_LE(admitted, share + 48) << slices << " slices";
  }
}

}  // namespace
}  // namespace sluice::core
