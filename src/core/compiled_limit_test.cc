#include "support/property.h"
#include "support/traffic.h"
#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace sluice::core {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Limit limit(Algorithm algorithm, std::uint64_t amount, Nanos period) {
  return {.algorithm = algorithm, .amount = amount, .period = period};
}

template <class Change>
Limit changed(Limit limit, Change change) {
  change(limit);
  return limit;
}

struct Refusal {
  Limit limit;
  std::string message;
  std::string remedy;
};

std::vector<Refusal> refusals() {
  using enum Algorithm;
  const Limit bucket = limit(token_bucket, 10, 1s);
  const Limit window = limit(fixed_window, 10, 1s);
  return {
      {limit(token_bucket, 0, 1s), "amount of 0 would reject everything", "at least 1"},
      {limit(gcra, 1'000'000'001, 1h), "1000000001", "at most 1000000000"},
      {limit(gcra, ~std::uint64_t{0}, 1h), "18446744073709551615", "at most 1000000000"},
      {limit(token_bucket, 5, 0s), "0s is too short", "at least 1ms"},
      {limit(token_bucket, 5, 999'999ns), "999us999ns", "at least 1ms"},
      {limit(token_bucket, 5, -1s), "-1s", "at least 1ms"},
      {limit(token_bucket, 5, 366 * 24h + 1ns), "366d1ns is too long", "at most 366d"},
      {limit(token_bucket, 1'000'001, 1ms), "1000001 per 1ms is more than 1000000000 per second",
       "at most 1000000 per 1ms"},
      {changed(bucket, [](Limit& l) { l.burst = 0; }), "burst of 0", "1 to 1000000000"},
      {changed(bucket, [](Limit& l) { l.burst = 1'000'000'001; }), "burst of 1000000001",
       "1 to 1000000000"},
      {changed(limit(token_bucket, 1, 366 * 24h), [](Limit& l) { l.burst = 2; }),
       "burst of 2 at 1 per 366d would take more than two years",
       "burst of at most 1, or fixed_window"},
      {changed(limit(leaky_bucket, 1, 30 * 24h), [](Limit& l) { l.burst = 10'000; }),
       "burst of 10000 at 1 per 30d", "at most 24, or fixed_window"},
      {changed(limit(leaky_bucket, 1, 1s), [](Limit& l) { l.max_delay = 25h; }),
       "max_delay of 1d1h", "at most 1d"},
      {changed(limit(leaky_bucket, 1, 1s), [](Limit& l) { l.max_delay = -1ns; }),
       "max_delay of -1ns", "at most 1d"},
      {limit(sliding_log, 4097, 1s), "4097", "at most 4096, or sliding_buckets"},
      {changed(limit(sliding_buckets, 5, 1s), [](Limit& l) { l.bucket_width = 0s; }),
       "bucket_width of 0s", "more than 0 and at most the period"},
      {changed(limit(sliding_buckets, 5, 1s), [](Limit& l) { l.bucket_width = 2s; }),
       "bucket_width of 2s does not fit into a period of 1s", "at most the period"},
      {changed(limit(sliding_buckets, 5, 24h), [](Limit& l) { l.bucket_width = 1s; }),
       "bucket_width of 1s cuts a period of 1d into more than 4096", "at least 21s93ms750us"},
      {changed(limit(concurrency, 5, 0s), [](Limit& l) { l.slot_ttl = 0s; }), "slot_ttl of 0s",
       "1ms to 366d"},
      {changed(limit(concurrency, 5, 0s), [](Limit& l) { l.slot_ttl = 367 * 24h; }),
       "slot_ttl of 367d", "1ms to 366d"},
      {limit(concurrency, 5, 1s), "no period", "the amount alone, as in 20"},
      {changed(window, [](Limit& l) { l.burst = 3; }), "fixed_window has no use for 'burst'",
       "token_bucket, leaky_bucket or gcra"},
      {changed(limit(gcra, 1, 1s), [](Limit& l) { l.refill = Refill::interval; }),
       "gcra has no use for 'refill'", "token_bucket"},
      {changed(bucket, [](Limit& l) { l.align = Align::epoch; }), "no use for 'align'",
       "fixed_window"},
      {changed(bucket, [](Limit& l) { l.unit = CalendarUnit::month; }),
       "token_bucket cannot count per calendar month", "fixed_window"},
      {changed(window, [](Limit& l) { l.timezone = "Europe/Berlin"; }), "'timezone'",
       "day, week, month or"},
      {changed(window, [](Limit& l) { l.bucket_width = 1ms; }), "'bucket_width'",
       "sliding_buckets"},
      {changed(bucket, [](Limit& l) { l.max_delay = 1s; }), "'max_delay'", "leaky_bucket"},
      {changed(bucket, [](Limit& l) { l.slot_ttl = 1s; }), "'slot_ttl'", "concurrency"},
      {changed(limit(concurrency, 5, 0s), [](Limit& l) { l.count_rejected = true; }),
       "'count_rejected'", "another algorithm"},
      {changed(window, [](Limit& l) { l.align = Align::calendar; }), "calendar windows",
       "1000/month"},
      {changed(window, [](Limit& l) { l.unit = CalendarUnit::month; }),
       "'month' is a calendar period, but the windows are aligned to epoch", "align calendar"},
      {changed(window,
               [](Limit& l) {
                 l.align = Align::calendar;
                 l.unit = CalendarUnit::day;
               }),
       "a calendar day has no use for a period of", "leave one of them out"},
      {changed(limit(fixed_window, 5, 0s),
               [](Limit& l) {
                 l.align = Align::calendar;
                 l.unit = CalendarUnit::day;
                 l.timezone = "Mars/Olympus";
               }),
       "unknown time zone 'Mars/Olympus'", "Europe/Berlin"},
  };
}

// A limit that cannot be enforced comes back with the offending value and what to do instead.
TEST(Compile, RefusalsNameTheValueAndARemedy) {
  for (const Refusal& refusal : refusals()) {
    const Parsed<CompiledLimit> result = compile(refusal.limit);
    ASSERT_FALSE(result.has_value()) << refusal.message;
    EXPECT_THAT(result.error().message, HasSubstr(refusal.message));
    EXPECT_THAT(result.error().remedy, HasSubstr(refusal.remedy));
  }
}

// Whoever follows the remedy for a burst that is too large gets a limit that compiles.
TEST(Compile, RemedyForALargeBurstCompiles) {
  sluice::testing::check_property(500, [] {
    Limit of = *sluice::testing::bucket_limits();
    of.burst = kAmountMax;
    const Parsed<CompiledLimit> refused = compile(of);
    if (refused.has_value()) return;
    const std::string& remedy = refused.error().remedy;
    const std::size_t digits = remedy.find_first_of("0123456789");
    of.burst = std::stoull(remedy.substr(digits));
    RC_ASSERT(compile(of).has_value());
    of.burst = *of.burst + 1;
    const bool larger = compile(of).has_value();
    RC_ASSERT(!larger);
  });
}

// The corners of the accepted range compile and limit: 2^3 corners for every algorithm.
TEST(Compile, CornersOfTheRangeAreAccepted) {
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::concurrency) continue;
    const std::uint64_t most = algorithm == Algorithm::sliding_log ? kLogAmountMax : kAmountMax;
    for (const Limit& corner :
         {limit(algorithm, 1, kPeriodMin), limit(algorithm, 1, kPeriodMax),
          limit(algorithm, std::min<std::uint64_t>(most, 1'000'000), kPeriodMin),
          limit(algorithm, most, 1s), limit(algorithm, most, kPeriodMax)}) {
      EXPECT_TRUE(compile(corner).has_value()) << to_string(algorithm);
    }
  }
}

TEST(Compile, DefaultsAreThoseOfTheDesign) {
  EXPECT_EQ(capacity(limit(Algorithm::token_bucket, 7, 1s)), 7U);
  EXPECT_EQ(capacity(limit(Algorithm::gcra, 7, 1s)), 7U);
  EXPECT_EQ(capacity(limit(Algorithm::leaky_bucket, 7, 1s)), 1U);
  const auto slices =
      std::get<BucketsLimit>(compile(limit(Algorithm::sliding_buckets, 7, 80s)).value());
  EXPECT_EQ(slices.width, 10s);
  EXPECT_EQ(slices.slices, 8);
  const auto leases =
      std::get<ConcurrencyLimit>(compile(limit(Algorithm::concurrency, 7, 0s)).value());
  EXPECT_EQ(leases.slot_ttl, 60s);
}

}  // namespace
}  // namespace sluice::core
