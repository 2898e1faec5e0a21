#include "frontend/gateway/pool_demand.h"

#include <gtest/gtest.h>

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;

TEST(PoolDemand, IsThePeakOfThisPeriodAndTheOneBefore) {
  PoolDemand demand{60s};
  MonoTime now{1h};
  demand.count(3, now);
  demand.count(7, now + 10s);
  demand.count(2, now + 59s);
  EXPECT_EQ(demand.peak(), 7U);
  demand.count(4, now + 60s);
  EXPECT_EQ(demand.peak(), 7U) << "of the period before";
  demand.count(5, now + 119s);
  EXPECT_EQ(demand.peak(), 7U);
  demand.count(1, now + 120s);
  EXPECT_EQ(demand.peak(), 5U);
  demand.count(1, now + 180s);
  EXPECT_EQ(demand.peak(), 1U);
}

// What is in use while nothing is counted: a download of an hour, say.
TEST(PoolDemand, AfterASilenceIsWhatStayedInUse) {
  PoolDemand demand{60s};
  const MonoTime now{1h};
  demand.count(50, now);
  demand.count(3, now + 1s);
  demand.count(3, now + 2h);
  EXPECT_EQ(demand.peak(), 3U);
}

}  // namespace
}  // namespace sluice::gateway
