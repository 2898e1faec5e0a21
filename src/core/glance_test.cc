// A glance says what the whole step says, or that it cannot tell.
#include "support/property.h"
#include "support/traffic.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/core/gcra.h>
#include <sluice/core/meter.h>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <variant>

namespace sluice::core {
namespace {

using namespace std::chrono_literals;
using sluice::testing::check_property;

GcraLimit bucket(const Limit& limit) { return std::get<GcraLimit>(compile(limit).value()); }

void expect_same(const GcraLimit& limit, std::uint64_t tat, std::uint64_t now, Cost cost) {
  std::uint64_t after = tat;
  const Glance glance = meter_glance(limit.meter, after, now, cost);
  const MeterStep step = meter_step(limit.meter, {.tat = tat}, now, cost);
  if (glance == Glance::unclear) {
    RC_ASSERT(after == tat);
    return;
  }
  RC_ASSERT((glance == Glance::admitted) == (step.verdict == Verdict::allowed));
  RC_ASSERT(after == step.state.tat);
  RC_ASSERT(step.state.refunded == 0U);
}

TEST(Glance, AgreesWithTheWholeStep) {
  check_property(20'000, [] {
    Limit limit{.algorithm = Algorithm::leaky_bucket,
                .amount = *rc::gen::inRange<std::uint64_t>(1, 1000),
                .period = std::chrono::seconds{*rc::gen::inRange(1, 5000)},
                .burst = *rc::gen::inRange<std::uint64_t>(1, 50),
                .count_rejected = *rc::gen::arbitrary<bool>()};
    if (*rc::gen::arbitrary<bool>())
      limit.max_delay = std::chrono::seconds{*rc::gen::inRange(1, 600)};
    const GcraLimit compiled = bucket(limit);
    const std::uint64_t now = *rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>());
    // From long ago to a clock that was set back; often at the very edges.
    const std::int64_t edge = *rc::gen::element<std::int64_t>(
        0, compiled.meter.capacity, compiled.meter.full, compiled.meter.possible);
    const auto units = *rc::gen::inRange<std::int64_t>(-60, 60);
    const auto ticks = *rc::gen::inRange<std::int64_t>(-2, 3);
    const std::int64_t ahead = edge + units * compiled.meter.unit + ticks;
    expect_same(compiled, now + static_cast<std::uint64_t>(ahead), now,
                *rc::gen::inRange<Cost>(0, 60));
  });
}

// What the common case is: one that is unclear would only be slow, and nobody would notice.
TEST(Glance, IsClearInTheUsualCases) {
  const GcraLimit limit = bucket({.algorithm = Algorithm::token_bucket, .amount = 3, .period = 1h});
  const std::uint64_t now = gcra_ticks(limit, MonoTime{1h});
  std::uint64_t tat = now;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(meter_glance(limit.meter, tat, now, 1), Glance::admitted);
  }
  EXPECT_EQ(meter_glance(limit.meter, tat, now, 1), Glance::rejected);
  EXPECT_EQ(meter_glance(limit.meter, tat, now, 0), Glance::unclear);
  EXPECT_EQ(meter_glance(limit.meter, tat, now, 4), Glance::unclear);
}

}  // namespace
}  // namespace sluice::core
