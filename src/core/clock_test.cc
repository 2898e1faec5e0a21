// Keys that are left alone for years, and clocks that are set back by years.
#include "support/traffic.h"
#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>

#include <gtest/gtest.h>

#include <cstdint>

namespace sluice::core {
namespace {

using namespace std::chrono_literals;
using sluice::testing::at;
using sluice::testing::compiled;
using sluice::testing::peek;

constexpr std::int64_t kDay = Nanos{24h}.count();
constexpr std::int64_t kYear2000 = 10'957 * kDay;

// Charges one, then only looks, with peeks and impossible costs, in place.
void expect_looks_keep_nothing_alive(const Limit& of, std::int64_t gap, int rounds) {
  const CompiledLimit limit = compiled(of);
  const auto full = static_cast<Cost>(capacity(of));
  for (const Cost cost : {Cost{0}, full + 1}) {
    SCOPED_TRACE(cost == 0 ? "peek" : "never");
    Cell cell;
    std::int64_t now = kYear2000;
    ASSERT_TRUE(cell.decide(limit, at(now), full).decision.allowed());
    for (int i = 0; i < rounds; ++i) {
      now += gap;
      const Decision seen = cell.decide(limit, at(now), cost).decision;
      ASSERT_GE(seen.remaining + 11, full) << "round " << i;  // the first may come before the drain
      ASSERT_TRUE(i == 0 || seen.remaining == full) << "round " << i;
      ASSERT_TRUE(i == 0 || seen.reset_after == 0ns) << "round " << i;
    }
    const Decision next = cell.decide(limit, at(now), full).decision;
    EXPECT_TRUE(next.allowed());
    EXPECT_EQ(next.delay, 0ns);
  }
}

// Ticks wrap, and a state that was last written half a range ago looks like the future. Looking at
// it more often than it drains must not make it young.
TEST(Clock, LooksDoNotKeepADrainedBucketAlive) {
  Limit queued{.algorithm = Algorithm::leaky_bucket, .amount = 300'000'000, .period = 1s};
  queued.max_delay = 24h;
  expect_looks_keep_nothing_alive(queued, kDay, 439);
  Limit slow{.algorithm = Algorithm::token_bucket, .amount = 7, .period = 10 * 24h};
  slow.burst = 500;
  expect_looks_keep_nothing_alive(slow, 700 * kDay, 20);
}

// A set-back clock, farther than the ticks reach: the key is full, and not idle.
void expect_refused_after_step_back(const Limit& of, std::int64_t from, std::int64_t to) {
  const CompiledLimit limit = compiled(of);
  const auto full = static_cast<Cost>(capacity(of));
  Cell cell;
  ASSERT_TRUE(cell.decide(limit, at(from), full).decision.allowed());
  EXPECT_EQ(peek(cell, limit, to).remaining, 0U);
  const Decision decision = cell.decide(limit, at(to), full).decision;
  EXPECT_EQ(decision.verdict, Verdict::rejected);
  ASSERT_TRUE(decision.retry_after.has_value());
  EXPECT_TRUE(cell.decide(limit, at(to + decision.retry_after->count()), full).decision.allowed());
}

TEST(Clock, SetBackByDecadesGrantsNothing) {
  const Limit thirds{.algorithm = Algorithm::token_bucket, .amount = 3, .period = 1s};
  expect_refused_after_step_back(thirds, kYear2000, 0);
  for (std::int64_t years = 1; years <= 30; ++years) {
    expect_refused_after_step_back(thirds, kYear2000, kYear2000 - years * 365 * kDay);
  }
  Limit fast{.algorithm = Algorithm::token_bucket, .amount = 300'000'000, .period = 1s};
  fast.burst = 3;
  expect_refused_after_step_back(fast, kYear2000, 10'378 * kDay);  // June 1998
  for (std::int64_t months = 1; months <= 360; ++months) {
    expect_refused_after_step_back(fast, kYear2000, kYear2000 - months * 30 * kDay);
  }
}

}  // namespace
}  // namespace sluice::core
