#include "cli/load/http/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Plot, RatesAreDrawnOverTimesInWhichSomethingPasses) {
  EXPECT_EQ(points_of_a_rate(1, 250ms), 4U) << "one a second, in a second";
  EXPECT_EQ(points_of_a_rate(3, 250ms), 4U);
  EXPECT_EQ(points_of_a_rate(10, 250ms), 2U);
  EXPECT_EQ(points_of_a_rate(1000, 250ms), 1U);
  EXPECT_EQ(points_of_a_rate(0.1, 500ms), 20U) << "one in ten seconds, in ten seconds";
  EXPECT_EQ(points_of_a_rate(0, 250ms), 1U);
  EXPECT_EQ(points_of_a_rate(1, 5s), 1U);
}

// Eight requests in eight seconds, in points of 250 ms: each of them alone would be 4 per second.
TEST(Plot, OneInASecondLooksLikeOneInASecond) {
  HttpRun run{.tally = Tally{250ms, 1}, .elapsed = 8s};
  run.tally.series.resize(32);
  for (std::size_t i = 0; i < run.tally.series.size(); i += 4) {
    run.tally.series[i].offered = run.tally.series[i].admitted = 1;
  }
  LoadOptions options;
  options.url = "http://127.0.0.1:1/";
  options.duration = "8s";
  options.rate = "1/s";
  Parsed<HttpPlan> plan = make_http_plan(options);
  ASSERT_TRUE(plan) << plan.error().text();
  plan->expect = Expectation{.amount = 1, .period = 1s};
  const std::string svg = plot_svg(*plan, run);
  EXPECT_THAT(svg, HasSubstr(">1</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">4</text>")));
}

}  // namespace
}  // namespace sluice::cli
