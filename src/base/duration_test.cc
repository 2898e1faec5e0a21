#include "base/duration.h"

#include "support/property.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <string>
#include <utility>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using sluice::testing::check_property;
using ::testing::HasSubstr;

TEST(Duration, ReadsNumbersWithUnits) {
  const std::pair<const char*, Nanos> table[] = {
      {"0s", 0s},
      {"1ns", 1ns},
      {"500ms", 500ms},
      {"90s", 90s},
      {"1h30m", 90min},
      {"7d", 7 * 24h},
      {"2w", 14 * 24h},
      {"1w1d1h1m1s1ms1us1ns", 8 * 24h + 1h + 1min + 1s + 1ms + 1us + 1ns},
      {"007s", 7s},
      {"1ms500us", 1500us},
      {"9223372036854775807ns", Nanos::max()},
  };
  for (const auto& [text, nanos] : table) EXPECT_EQ(parse_duration(text).value(), nanos) << text;
}

TEST(Duration, MistakesNameTheTextAndARemedy) {
  const std::pair<const char*, const char*> table[] = {
      {"", "empty"},
      {"s", "'s' is not a length of time"},
      {"5", "'5' lacks a unit"},
      {"1h30", "'1h30' lacks a unit"},
      {"5x", "unknown unit 'x'"},
      {"5 s", "unknown unit ' s'"},
      {"-5s", "'-5s' is not a length of time"},
      {"1.5s", "'1.5s' has a fraction"},
      {"30m1h", "descending"},
      {"1s1s", "descending"},
      {"9223372036854775808ns", "too long"},
      {"18446744073709551616ns", "too long"},
      {"15251w", "too long"},
      {"106751d23h47m16s854ms775us808ns", "too long"},
  };
  for (const auto& [text, message] : table) {
    const Parsed<Nanos> parsed = parse_duration(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr(message)) << text;
    EXPECT_FALSE(parsed.error().remedy.empty()) << text;
  }
}

TEST(Duration, ReadsBackWhatItWrites) {
  check_property(5000, [] {
    const auto any = *rc::gen::oneOf(
        rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max()),
        rc::gen::map(
            rc::gen::pair(rc::gen::inRange<std::int64_t>(0, 1000),
                          rc::gen::element<std::int64_t>(1, 1000, 1'000'000, 1'000'000'000,
                                                         60'000'000'000, 3600'000'000'000)),
            [](const auto& pick) { return pick.first * pick.second; }));
    RC_ASSERT(parse_duration(format_duration(Nanos{any})).value() == Nanos{any});
  });
}

TEST(Duration, WritesTheShortestSpelling) {
  EXPECT_EQ(format_duration(0s), "0s");
  EXPECT_EQ(format_duration(90s), "1m30s");
  EXPECT_EQ(format_duration(366 * 24h), "366d");
  EXPECT_EQ(format_duration(1500us), "1ms500us");
  EXPECT_EQ(format_duration(-1s), "-1s");
  EXPECT_EQ(format_duration(Nanos::min()), "-106751d23h47m16s854ms775us808ns");
  EXPECT_EQ(format_duration(Nanos::max()), "106751d23h47m16s854ms775us807ns");
}

TEST(Duration, ApproximatesForEyes) {
  EXPECT_EQ(approximate_duration(0s), "0s");
  EXPECT_EQ(approximate_duration(12ns), "12ns");
  EXPECT_EQ(approximate_duration(1234us), "1.23ms");
  EXPECT_EQ(approximate_duration(90s), "1.5m");
  EXPECT_EQ(approximate_duration(15min), "15m") << "as people write it";
  EXPECT_EQ(approximate_duration(1h), "1h");
  EXPECT_EQ(approximate_duration(1340min), "22.3h");
  EXPECT_EQ(approximate_duration(20'000min), "13.9d");
}

// Neither at the edge to the next unit nor beyond the largest one.
TEST(Duration, ApproximationsHaveNoExponent) {
  EXPECT_EQ(approximate_duration(999'900us), "1000ms");
  EXPECT_EQ(approximate_duration(999'900ns), "1000us");
  EXPECT_EQ(approximate_duration(366 * 24h), "366d");
  EXPECT_EQ(approximate_duration(2000 * 24h), "2000d");
  EXPECT_EQ(approximate_duration(Nanos::max()), "106752d");
}

}  // namespace
}  // namespace sluice
