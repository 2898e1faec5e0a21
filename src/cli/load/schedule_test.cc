#include "cli/load/schedule.h"

#include "support/property.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

// However long a run is, request n starts at n / rate: rounding never adds up.
TEST(Schedule, DoesNotDrift) {
  constexpr Schedule kThirds{.amount = 3};
  EXPECT_EQ(kThirds.start_of(0), 0s);
  EXPECT_EQ(kThirds.start_of(1), 333'333'333ns);
  EXPECT_EQ(kThirds.start_of(3), 1s);
  EXPECT_EQ(kThirds.start_of(3'000'000'000), 1'000'000'000s);
}

// A request that would start at the very end is not part of the run.
TEST(Schedule, CountsTheStartsBeforeTheEnd) {
  testing::check_property(200, [] {
    const Schedule schedule{.amount = *rc::gen::inRange<std::uint64_t>(1, 5000),
                            .period = Nanos{*rc::gen::inRange<std::int64_t>(1, 5'000'000'000)}};
    const Nanos time{*rc::gen::inRange<std::int64_t>(1, 10'000'000'000)};
    const std::uint64_t count = schedule.starts_within(time);
    RC_ASSERT(count > 0U);
    RC_ASSERT(schedule.start_of(count - 1) < time);
    RC_ASSERT(schedule.start_of(count) >= time);
  });
}

TEST(Schedule, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(parse_rate("2000/s")->per_second(), 2000);
  EXPECT_EQ(parse_rate("2000/1s")->per_second(), 2000);
  EXPECT_EQ(parse_rate("2000")->per_second(), 2000);
  EXPECT_EQ(parse_rate("30/m")->period, 1min);
  EXPECT_EQ(parse_rate("5/100ms")->per_second(), 50);
}

TEST(Schedule, NamesWhatIsWrongWithARate) {
  for (const std::string text :
       {"", "0/s", "x/s", "1/", "1/0s", "1/x", "-1/s", "1/s/s", "11/1us"}) {
    const auto rate = parse_rate(text);
    ASSERT_FALSE(rate) << text;
    EXPECT_NE(rate.error().message.find("is no rate"), std::string::npos) << text;
    EXPECT_NE(rate.error().remedy.find("2000/s"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace sluice::cli
