#include "base/rfc3339.h"

#include "support/property.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <utility>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using sluice::testing::check_property;
using ::testing::HasSubstr;

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Rfc3339, ReadsWhatTheStandardAllows) {
  const std::pair<const char*, std::int64_t> table[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"1970-01-01t00:00:00z", 0},
      {"1970-01-01 00:00:01Z", kSecond},
      {"2022-01-20T00:13:05Z", 1'642'637'585 * kSecond},
      {"2022-01-20T01:13:05+01:00", 1'642'637'585 * kSecond},
      {"2022-01-19T18:28:05-05:45", 1'642'637'585 * kSecond},
      {"2022-01-20T00:13:05.25Z", 1'642'637'585 * kSecond + 250'000'000},
      {"2022-01-20T00:13:05.000000001Z", 1'642'637'585 * kSecond + 1},
      {"2022-01-20T00:13:05.0000000010000Z", 1'642'637'585 * kSecond + 1},
      {"2024-02-29T00:00:00Z", 1'709'164'800 * kSecond},
      {"2016-12-31T23:59:60Z", 1'483'228'800 * kSecond},
      {"1969-12-31T23:30:00-01:00", 1800 * kSecond},
      {"2022-01-20T00:13:05-00:00", 1'642'637'585 * kSecond},
  };
  for (const auto& [text, nanos] : table) {
    EXPECT_EQ(parse_rfc3339(text).value().time_since_epoch().count(), nanos) << text;
  }
}

TEST(Rfc3339, RefusesEverythingElseAndQuotesIt) {
  for (const char* text : {"",
                           "now",
                           "2022",
                           "2022-01-20",
                           "2022-01-20T00:13:05",
                           "2022-01-20T00:13Z",
                           "2022-01-20T00:13:05.Z",
                           "2022-1-20T00:13:05Z",
                           "2022-13-01T00:00:00Z",
                           "2022-00-01T00:00:00Z",
                           "2022-02-30T00:00:00Z",
                           "2023-02-29T00:00:00Z",
                           "2022-01-00T00:00:00Z",
                           "2022-01-20T24:00:00Z",
                           "2022-01-20T00:60:00Z",
                           "2022-01-20T00:00:61Z",
                           "2022-01-20T00:00:00+24:00",
                           "2022-01-20T00:00:00+01:60",
                           "2022-01-20T00:00:00+0100",
                           "2022-01-20T00:00:00+1:00",
                           "2022-01-20T00:00:00Zx",
                           "2022-01-20T00:00:00Z ",
                           " 2022-01-20T00:00:00Z",
                           "1969-12-31T23:59:59Z",
                           "1970-01-01T00:00:00+00:01",
                           "2263-01-01T00:00:00Z",
                           "9999-12-31T23:59:59Z",
                           "0000-01-01T00:00:00Z",
                           "2022-01-20T00:00:00.0000000001Z",
                           "2022/01/20T00:00:00Z",
                           "20220120T000000Z",
                           "2022-01-20X00:00:00Z",
                           "-022-01-20T00:00:00Z",
                           "2022-01-20T-1:00:00Z",
                           "2022-01-20T00:00:00,5Z"}) {
    const Parsed<WallTime> parsed = parse_rfc3339(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr(text));
    EXPECT_THAT(parsed.error().remedy, HasSubstr("2022-01-20T00:13:05Z"));
  }
}

TEST(Rfc3339, ReadsBackWhatItWrites) {
  check_property(5000, [] {
    const auto nanos = *rc::gen::resize(
        100, rc::gen::inRange<std::int64_t>(0, kWallTimeEnd.time_since_epoch().count()));
    const std::int64_t precision =
        *rc::gen::element<std::int64_t>(1, 1000, 1'000'000, kSecond, 3600 * kSecond);
    const WallTime time{Nanos{nanos / precision * precision}};
    RC_ASSERT(parse_rfc3339(format_rfc3339(time)).value() == time);
  });
}

TEST(Rfc3339, WritesAsManyDigitsAsItTakes) {
  EXPECT_EQ(format_rfc3339(WallTime{}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_rfc3339(WallTime{250ms}), "1970-01-01T00:00:00.25Z");
  EXPECT_EQ(format_rfc3339(WallTime{1ns}), "1970-01-01T00:00:00.000000001Z");
}

// Any bytes are a time or a mistake; nothing is read past the end.
TEST(Rfc3339, AnyTextIsATimeOrAMistake) {
  check_property(3000, [] {
    std::string text = "2022-01-20T00:13:05.25+01:00";
    const auto changes = *rc::gen::container<std::vector<std::pair<std::size_t, char>>>(
        rc::gen::pair(rc::gen::inRange<std::size_t>(0, text.size()), rc::gen::arbitrary<char>()));
    for (const auto& [where, what] : changes) text[where] = what;
    text.resize(*rc::gen::inRange<std::size_t>(0, text.size() + 1));
    const Parsed<WallTime> parsed = parse_rfc3339(text);
    if (!parsed) RC_ASSERT(!parsed.error().message.empty());
  });
}

}  // namespace
}  // namespace sluice
