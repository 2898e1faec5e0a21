#include "metrics/histogram.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice {
namespace {

// The value that a sorted list has at the same rank.
Nanos exact_percentile(std::vector<std::int64_t> values, double share) {
  std::ranges::sort(values);
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return Nanos{values[std::max<std::size_t>(rank, 1) - 1]};
}

// Never too low, at most a sixty-fourth too high, over all magnitudes.
RC_GTEST_PROP(Histogram, PercentilesAreNeverTooLowAndAtMostOneInSixtyFourTooHigh, ()) {
  const auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(
      rc::gen::apply([](std::int64_t mantissa, int shift) { return (mantissa & 0xffff) << shift; },
                     rc::gen::arbitrary<std::int64_t>(), rc::gen::inRange(0, 46))));
  Histogram histogram;
  for (const std::int64_t value : values) histogram.record(Nanos{value});
  RC_ASSERT(histogram.count() == values.size());
  for (const double share : {0.0, 0.1, 0.5, 0.9, 0.99, 1.0}) {
    const Nanos exact = exact_percentile(values, share);
    RC_ASSERT(histogram.percentile(share) >= exact);
    RC_ASSERT(histogram.percentile(share) <= exact + exact / 64);
  }
  RC_ASSERT(histogram.percentile(1.0) == histogram.max());
}

// Two threads that counted apart say the same as one that counted everything.
TEST(Histogram, TakesOverWhatAnotherHasRecorded) {
  Histogram one;
  Histogram other;
  Histogram both;
  for (int i = 0; i < 1000; ++i) {
    (i % 3 == 0 ? one : other).record(Nanos{i * i});
    both.record(Nanos{i * i});
  }
  one.add(other);
  EXPECT_EQ(one.count(), both.count());
  EXPECT_EQ(one.max(), both.max());
  for (const double share : {0.1, 0.5, 0.99}) {
    EXPECT_EQ(one.percentile(share), both.percentile(share));
  }
}

TEST(Histogram, IsEmptyAtFirst) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.percentile(0.5), Nanos{0});
}

TEST(Histogram, TakesTheLargestValueThereIs) {
  Histogram histogram;
  histogram.record(Nanos::max());
  histogram.record(Nanos{-5});  // a clock that went back counts as no time
  EXPECT_EQ(histogram.percentile(1.0), Nanos::max());
  EXPECT_EQ(histogram.percentile(0.5), Nanos{0});
}

}  // namespace
}  // namespace sluice
