#include "support/property.h"
#include "support/traffic.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/core/limit_text.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace sluice::core {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// From the text to the limit a step function would use, as rules are read.
Parsed<CompiledLimit> read(std::string_view text, std::optional<Algorithm> algorithm = {}) {
  const Parsed<Limit> limit = parse_limit(text, algorithm);
  if (!limit) return tl::unexpected(limit.error());
  return compile(*limit);
}

TEST(LimitText, AmountAndPeriod) {
  const Limit bucket = parse_limit("100/1s", std::nullopt).value();
  EXPECT_EQ(bucket.algorithm, Algorithm::token_bucket);
  EXPECT_EQ(bucket.amount, 100U);
  EXPECT_EQ(bucket.period, 1s);
  EXPECT_EQ(parse_limit("1/1h30m", Algorithm::gcra).value().period, 90min);
  EXPECT_EQ(parse_limit("1/90s", Algorithm::gcra).value().algorithm, Algorithm::gcra);
}

TEST(LimitText, CalendarPeriodMeansFixedWindowsOfTheCalendar) {
  for (const auto& [word, unit] :
       {std::pair{"day", CalendarUnit::day}, std::pair{"week", CalendarUnit::week},
        std::pair{"month", CalendarUnit::month}, std::pair{"year", CalendarUnit::year}}) {
    const Limit limit = parse_limit(std::string{"1000/"} + word, std::nullopt).value();
    EXPECT_EQ(limit.algorithm, Algorithm::fixed_window);
    EXPECT_EQ(limit.align, Align::calendar);
    EXPECT_EQ(limit.unit, unit);
    EXPECT_TRUE(compile(limit).has_value());
  }
}

TEST(LimitText, AmountAloneIsForConcurrency) {
  const Limit limit = parse_limit("20", Algorithm::concurrency).value();
  EXPECT_EQ(limit.amount, 20U);
  EXPECT_TRUE(compile(limit).has_value());
}

struct Mistake {
  std::string text;
  std::optional<Algorithm> algorithm;
  std::string message;
  std::string remedy;
};

TEST(LimitText, MistakesNameTheTextAndARemedy) {
  const std::vector<Mistake> mistakes{
      {"0/1s", {}, "amount of 0", "at least 1"},
      {"-1/1s", {}, "'-1/1s' is negative", "at least 1"},
      {"5/0s", {}, "0s is too short", "at least 1ms"},
      {"5", {}, "'5' lacks a period", "100/1s"},
      {"10r/s", {}, "'10r/s' is not of the form amount/period", "write 10/1s"},
      {"600r/m", {}, "'600r/m' is not of the form", "write 600/1m"},
      {"100rps", {}, "'100rps' is not of the form", "write 100/1s"},
      {"r/s", {}, "the amount in 'r/s' is not a whole number", "100/1s"},
      {"5", Algorithm::gcra, "'5' lacks a period", "100/1s"},
      {"5/1x", {}, "unknown unit 'x' in '1x'", "ns, us, ms, s, m, h, d, w"},
      {"5/", {}, "'5/'", "day, week, month, year"},
      {"5/1", {}, "'1' lacks a unit", "90s"},
      {"5/mont", {}, "'5/mont'", "day, week, month, year"},
      {"/1s", {}, "'/1s' is not a whole number", "100/1s"},
      {"1.5/1s", {}, "'1.5/1s' is not a whole number", "100/1s"},
      {"010/1s", {}, "'010/1s' begins with 0", "without leading zeros"},
      {"00/1s", {}, "'00/1s' begins with 0", "without leading zeros"},
      {"020", Algorithm::concurrency, "'020' begins with 0", "without leading zeros"},
      {" 5/1s", {}, "there is a blank in ' 5/1s'", "100/1s"},
      {"+5/1s", {}, "not a whole number", "100/1s"},
      {"5/1s/1s", {}, "'5/1s/1s'", ""},
      {"", {}, "'' lacks a period", "100/1s"},
      {"99999999999999999999/1s", {}, "'99999999999999999999/1s' is too large", "1000000000"},
      {"2000000000/1h", {}, "2000000000 is too large", "1000000000"},
      {"5/99999999999999999999s", {}, "too long a time", "292 years"},
      {"5/400d", {}, "400d is too long", "366d"},
      {"x", Algorithm::concurrency, "'x' is not a whole number", ""},
      {"-1", Algorithm::concurrency, "'-1' is negative", "at least 1"},
      {"0", Algorithm::concurrency, "amount of 0", "at least 1"},
      {"5/1s", Algorithm::concurrency, "no period", "as in 20"},
      {"5/month", Algorithm::gcra, "gcra cannot count per calendar month", "fixed_window"},
      {"5/month", Algorithm::concurrency, "concurrency cannot count per calendar month", ""},
  };
  for (const Mistake& mistake : mistakes) {
    const Parsed<CompiledLimit> result = read(mistake.text, mistake.algorithm);
    ASSERT_FALSE(result.has_value()) << mistake.text;
    EXPECT_THAT(result.error().message, HasSubstr(mistake.message)) << mistake.text;
    EXPECT_THAT(result.error().remedy, HasSubstr(mistake.remedy)) << mistake.text;
  }
}

TEST(LimitText, UnknownAlgorithmNamesAllAndTheNearest) {
  const Parsed<Algorithm> result = parse_algorithm("tokenbucket");
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, HasSubstr("'tokenbucket'"));
  EXPECT_THAT(result.error().remedy, HasSubstr("did you mean token_bucket?"));
  for (const Algorithm algorithm : kAlgorithms) {
    EXPECT_THAT(result.error().remedy, HasSubstr(std::string{to_string(algorithm)}));
  }
  EXPECT_THAT(parse_algorithm("quux").error().remedy, ::testing::Not(HasSubstr("did you mean")));
}

TEST(LimitText, WordsReadBackAsWhatTheyAre) {
  for (const Algorithm algorithm : kAlgorithms) {
    EXPECT_EQ(parse_algorithm(to_string(algorithm)).value(), algorithm);
  }
  for (const Refill refill : {Refill::continuous, Refill::interval}) {
    EXPECT_EQ(parse_refill(to_string(refill)).value(), refill);
  }
  for (const Align align : {Align::epoch, Align::calendar, Align::first_request}) {
    EXPECT_EQ(parse_align(to_string(align)).value(), align);
  }
  EXPECT_THAT(parse_refill("intervall").error().remedy, HasSubstr("did you mean interval?"));
  EXPECT_THAT(parse_align("first-request").error().remedy, HasSubstr("first_request"));
}

TEST(LimitText, RatesReadBackAsWhatTheyAre) {
  sluice::testing::check_property(1000, [] {
    const Algorithm algorithm =
        *rc::gen::element(Algorithm::token_bucket, Algorithm::sliding_log, Algorithm::concurrency);
    const Limit limit = *sluice::testing::limits_of(algorithm);
    const Limit again = parse_limit(rate_text(limit), limit.algorithm).value();
    RC_ASSERT(again.amount == limit.amount);
    RC_ASSERT(again.period == limit.period);
  });
}

// Any text at all is either a limit or a mistake with a message.
TEST(LimitText, AnyTextIsALimitOrAMistake) {
  sluice::testing::check_property(2000, [] {
    const std::string text = *rc::gen::container<std::string>(
        rc::gen::elementOf(std::string{"0123456789/smhdw nu-.\0\xff"
                                       "day",
                                       26}));
    const Parsed<CompiledLimit> result = read(text);
    if (!result) RC_ASSERT(!result.error().message.empty());
  });
}

}  // namespace
}  // namespace sluice::core
