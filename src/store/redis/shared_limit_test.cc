#include "store/redis/shared_limit.h"

#include "support/property.h"
#include "support/traffic.h"
#include <sluice/int128.h>

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;

Limit limit_of(Algorithm algorithm, std::uint64_t amount, Nanos period) {
  return {.algorithm = algorithm, .amount = amount, .period = period};
}

std::string text_of(const Limit& limit) { return compile_shared(limit).value().text; }

std::string problem_with(const Limit& limit) {
  const auto shared = compile_shared(limit);
  return shared ? "none: " + shared->text : shared.error().text();
}

TEST(SharedLimit, IsTextThatFieldsRemember) {
  EXPECT_EQ(text_of(limit_of(Algorithm::token_bucket, 10, 1s)), "bucket,-,0,100000,10,0");
  Limit limit = limit_of(Algorithm::leaky_bucket, 10, 1s);
  limit.max_delay = 2s;
  limit.count_rejected = true;
  EXPECT_EQ(text_of(limit), "bucket,r,0,100000,1,2000000");
  limit = limit_of(Algorithm::token_bucket, 10, 1min);
  limit.refill = Refill::interval;
  limit.stands_in = true;
  limit.burst = 12;
  EXPECT_EQ(text_of(limit), "interval,s,10,60000000,12");
  limit = limit_of(Algorithm::fixed_window, 10, 1min);
  EXPECT_EQ(text_of(limit), "window,-,10,60000000");
  limit.align = Align::first_request;
  limit.count_rejected = true;
  limit.stands_in = true;
  EXPECT_EQ(text_of(limit), "first,rs,10,60000000");
  limit = limit_of(Algorithm::fixed_window, 10, 0s);
  limit.align = Align::calendar;
  limit.unit = CalendarUnit::week;
  limit.timezone = "Europe/Berlin";
  EXPECT_EQ(text_of(limit), "calendar,-,10,week@Europe/Berlin");
  EXPECT_EQ(text_of(limit_of(Algorithm::sliding_counter, 10, 1s)), "counter,-,10,1000000");
  EXPECT_EQ(text_of(limit_of(Algorithm::sliding_log, 10, 1s)), "log,-,10,1000000");
  EXPECT_EQ(text_of(limit_of(Algorithm::sliding_buckets, 10, 1s)), "slices,-,10,1000000,125000,8");
  limit = limit_of(Algorithm::concurrency, 10, 0s);
  limit.slot_ttl = 30s;
  EXPECT_EQ(text_of(limit), "slots,-,10,30000000");
}

// One token is a whole number of ticks, or at least 256 of them.
TEST(SharedLimit, ChoosesTheCoarsestTickThatIsFineEnough) {
  EXPECT_EQ(text_of(limit_of(Algorithm::gcra, 1'000'000, 1s)), "bucket,-,0,1,1000000,0");
  EXPECT_EQ(text_of(limit_of(Algorithm::gcra, 2'000'000, 1s)), "bucket,-,1,1,2000000,0");
  EXPECT_EQ(text_of(limit_of(Algorithm::gcra, 3, 1s)), "bucket,-,0,333334,3,0");
  EXPECT_EQ(text_of(limit_of(Algorithm::gcra, 300'000, 1s)), "bucket,-,7,427,300000,0");
  EXPECT_EQ(text_of(limit_of(Algorithm::gcra, 1'000'000'000, 1s)), "bucket,-,18,263,1000000000,0");
}

// Never above the configured rate, at most a half percent below it, and exact to 2^53, over the
// whole range of limits.
TEST(SharedLimit, ProvesItsNumbers) {
  testing::check_property(2'000, [] {
    Limit limit = *testing::bucket_limits();
    limit.period = Nanos{ceil_div(limit.period.count(), std::int64_t{1'000}) * 1'000};
    if (limit.max_delay) limit.max_delay = Nanos{limit.max_delay->count() / 1'000 * 1'000};
    if (!core::compile(limit)) return;
    const auto shared = compile_shared(limit);
    if (!shared) {
      RC_ASSERT(limit.max_delay.has_value());
      return;
    }
    const auto& bucket = std::get<core::GcraLimit>(shared->steps);
    const Int128 exact = Int128{limit.period.count() / 1'000} << bucket.fraction_bits;
    const Int128 ours = Int128{bucket.meter.unit} * static_cast<std::int64_t>(limit.amount);
    RC_ASSERT(ours >= exact);
    RC_ASSERT((ours - exact) * 200 <= exact);
    RC_ASSERT(Int128{bucket.meter.possible} * 2 < Int128{1} << 53U);
    RC_ASSERT(bucket.meter.capacity < std::int64_t{1} << 46U);
  });
}

// What cannot be shared names the nearest that can, and that one can.
TEST(SharedLimit, NamesTheNearestThatCanBeShared) {
  EXPECT_EQ(problem_with(limit_of(Algorithm::gcra, 1, Nanos{1'000'000'001})),
            "a shared limit counts whole microseconds, a period of 1s1ns is none; use "
            "1s1us, or mode local");
  Limit limit = limit_of(Algorithm::sliding_buckets, 5, 1s);
  limit.bucket_width = Nanos{333'333'334};
  EXPECT_EQ(
      problem_with(limit),
      "a shared limit counts whole microseconds, a bucket_width of 333ms333us334ns is none; use "
      "333ms334us, or mode local");
  limit = limit_of(Algorithm::concurrency, 5, 0s);
  limit.slot_ttl = Nanos{1'500'000'500};
  EXPECT_EQ(problem_with(limit),
            "a shared limit counts whole microseconds, a slot_ttl of 1s500ms500ns is none; use "
            "1s500ms1us, or mode local");
  limit = limit_of(Algorithm::leaky_bucket, 5, 1s);
  limit.max_delay = Nanos{1'500};
  EXPECT_EQ(
      problem_with(limit),
      "a shared limit counts whole microseconds, a max_delay of 1us500ns is none; use 2us, or "
      "mode local");
}

TEST(SharedLimit, NamesTheLongestQueueOfAFastLimit) {
  Limit limit = limit_of(Algorithm::leaky_bucket, 900'000'001, 1s);
  limit.max_delay = 24h;
  EXPECT_EQ(problem_with(limit),
            "a max_delay of 1d at 900000001 per 1s is too long for a shared limit; use at most "
            "4h45m19s869ms183us, or mode local");
  limit.max_delay = Nanos{17'119'869'183'000};
  EXPECT_TRUE(compile_shared(limit).has_value()) << problem_with(limit);
  limit.max_delay = Nanos{17'119'869'184'000};
  EXPECT_FALSE(compile_shared(limit).has_value());
}

// The operator did not choose the default width, so it is rounded.
TEST(SharedLimit, RoundsTheDefaultWidth) {
  EXPECT_EQ(text_of(limit_of(Algorithm::sliding_buckets, 10, 1001us)), "slices,-,10,1001,126,8");
}

TEST(SharedLimit, SaysWhatTheCoreSaysOfLimitsThatCannotBeEnforced) {
  EXPECT_EQ(problem_with(limit_of(Algorithm::sliding_log, 5'000, 1s)),
            core::compile(limit_of(Algorithm::sliding_log, 5'000, 1s)).error().text());
}

// Design: windows of at least 800 ms and continuous buckets, unless requests queue or rejected ones
// count.
TEST(SharedLimit, KnowsWhatCanBeLeased) {
  const auto leasable = [](const Limit& limit) {
    return compile_shared(limit).value().is_leasable;
  };
  EXPECT_TRUE(leasable(limit_of(Algorithm::gcra, 10, 1ms)));
  EXPECT_TRUE(leasable(limit_of(Algorithm::fixed_window, 10, 800ms)));
  EXPECT_FALSE(leasable(limit_of(Algorithm::fixed_window, 10, 799ms)));
  EXPECT_FALSE(leasable(limit_of(Algorithm::sliding_log, 10, 1s)));
  EXPECT_FALSE(leasable(limit_of(Algorithm::sliding_counter, 10, 1s)));
  EXPECT_FALSE(leasable(limit_of(Algorithm::concurrency, 10, 0s)));
  Limit limit = limit_of(Algorithm::leaky_bucket, 10, 1s);
  EXPECT_TRUE(leasable(limit));
  limit.max_delay = 1s;
  EXPECT_FALSE(leasable(limit));
  limit = limit_of(Algorithm::gcra, 10, 1s);
  limit.count_rejected = true;
  EXPECT_FALSE(leasable(limit));
  limit = limit_of(Algorithm::token_bucket, 10, 1s);
  limit.refill = Refill::interval;
  EXPECT_FALSE(leasable(limit));
}

}  // namespace
}  // namespace sluice::store
