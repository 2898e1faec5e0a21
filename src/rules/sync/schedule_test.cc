#include "rules/sync/schedule.h"

#include "support/property.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <vector>

namespace sluice::rules {
namespace {

using namespace std::chrono_literals;

constexpr MonoTime kStart{1h};
constexpr ScheduleTimes kExact{.interval = 10s, .retry = 1s, .retry_max = 30s, .jitter_percent = 0};

TEST(Schedule, TheFirstRunIsOneIntervalAfterTheStart) {
  const Schedule schedule{kExact, 1, kStart};
  EXPECT_EQ((schedule.due() - kStart).count(), Nanos{10s}.count());
}

TEST(Schedule, TheIntervalIsCountedFromTheEndOfARun) {
  Schedule schedule{kExact, 1, kStart};
  schedule.began();
  schedule.ended(kStart + 1h, true);  // 360 intervals later
  EXPECT_EQ((schedule.due() - kStart).count(), Nanos{1h + 10s}.count());
}

TEST(Schedule, NothingIsDueDuringARun) {
  Schedule schedule{kExact, 1, kStart};
  schedule.began();
  schedule.ask();
  EXPECT_TRUE(schedule.due() == Schedule::kNever);
}

TEST(Schedule, WhoAsksIsServedAtOnceAndOnce) {
  Schedule schedule{kExact, 1, kStart};
  schedule.ask();
  schedule.ask();
  EXPECT_TRUE(schedule.due() <= kStart);
  schedule.began();
  schedule.ended(kStart, true);
  EXPECT_TRUE(schedule.due() == kStart + 10s);
}

TEST(Schedule, WhoAsksDuringARunGetsAnotherOne) {
  Schedule schedule{kExact, 1, kStart};
  schedule.began();
  schedule.ask();
  schedule.ask();
  schedule.ended(kStart, true);
  EXPECT_TRUE(schedule.due() <= kStart);
  schedule.began();
  schedule.ended(kStart, true);
  EXPECT_TRUE(schedule.due() == kStart + 10s) << "two askings during one run are one more run";
}

TEST(Schedule, PausesDoubleWithEachFailureUpToTheirMaximum) {
  Schedule schedule{kExact, 1, kStart};
  std::vector<std::int64_t> seconds;
  for (int failure = 0; failure < 8; ++failure) {
    schedule.began();
    schedule.ended(kStart, false);
    seconds.push_back((schedule.due() - kStart) / 1s);
  }
  EXPECT_EQ(seconds, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 30, 30, 30}));
}

TEST(Schedule, OneSuccessForgetsAllFailures) {
  Schedule schedule{kExact, 1, kStart};
  for (int failure = 0; failure < 5; ++failure) {
    schedule.began();
    schedule.ended(kStart, false);
  }
  schedule.began();
  schedule.ended(kStart, true);
  EXPECT_TRUE(schedule.due() == kStart + 10s);
  schedule.began();
  schedule.ended(kStart, false);
  EXPECT_TRUE(schedule.due() == kStart + 1s);
}

TEST(Schedule, EndlessFailuresDoNotOverflow) {
  Schedule schedule{
      {.interval = Nanos::max(), .retry = 1s, .retry_max = Nanos::max(), .jitter_percent = 4000},
      1,
      kStart};
  EXPECT_TRUE(schedule.due() > kStart);
  for (int failure = 0; failure < 1000; ++failure) {
    schedule.began();
    schedule.ended(kStart, false);
    ASSERT_TRUE(schedule.due() > kStart);
  }
}

TEST(Schedule, AnIntervalOfNothingIsNotABusyLoop) {
  Schedule schedule{
      {.interval = 0s, .retry = -1s, .retry_max = 0s, .jitter_percent = 50}, 1, kStart};
  EXPECT_TRUE(schedule.due() >= kStart + 500us);
  schedule.began();
  schedule.ended(kStart, false);
  EXPECT_TRUE(schedule.due() >= kStart + 500us);
}

TEST(Schedule, JitterStaysWithinItsBoundsAndVaries) {
  testing::check_property(100, [](std::uint64_t seed) {
    Schedule schedule{
        {.interval = 10s, .retry = 1s, .retry_max = 60s, .jitter_percent = 20}, seed, kStart};
    std::set<std::int64_t> pauses;
    for (int run = 0; run < 100; ++run) {
      schedule.began();
      schedule.ended(kStart, true);
      const Nanos pause = schedule.due() - kStart;
      RC_ASSERT(pause >= 8s);
      RC_ASSERT(pause <= 12s);
      pauses.insert(pause / 400ms);
    }
    RC_ASSERT(pauses.size() >= 8U);  // of the ten tenths, nearly all
  });
}

TEST(Schedule, TheSameSeedGivesTheSameTimes) {
  testing::check_property(20, [](std::uint64_t seed, const std::vector<bool>& outcomes) {
    Schedule one{{}, seed, kStart};
    Schedule other{{}, seed, kStart};
    for (const bool success : outcomes) {
      one.began();
      other.began();
      one.ended(kStart, success);
      other.ended(kStart, success);
      RC_ASSERT(one.due() == other.due());
    }
  });
}

// A slow obvious reference: a run is due if somebody asked since the last one began, or when the
// pause since it ended is over; the pause depends on the failures in a row alone.
TEST(Schedule, AnyHistoryRunsAsOftenAsTheReferenceSays) {
  testing::check_property(100, [](const std::vector<std::uint8_t>& history) {
    Schedule schedule{kExact, 1, kStart};
    MonoTime now = kStart;
    MonoTime ended = kStart;
    int failures = 0;
    bool asked = false;
    for (const std::uint8_t step : history) {
      if (step % 4 == 0) {
        schedule.ask();
        asked = true;
      }
      now += Nanos{1s} * (step % 16);
      Nanos pause = 10s;
      if (failures > 0) pause = std::min<Nanos>(Nanos{1s} * (1 << std::min(failures - 1, 20)), 30s);
      const bool due = asked || now >= ended + pause;
      RC_ASSERT((schedule.due() <= now) == due);
      if (!due) continue;
      schedule.began();
      asked = step % 32 == 1;
      if (asked) schedule.ask();
      RC_ASSERT(schedule.due() == Schedule::kNever);
      const bool success = step < 100;
      failures = success ? 0 : failures + 1;
      ended = now += Nanos{1s} * (step % 64);
      schedule.ended(now, success);
    }
  });
}

}  // namespace
}  // namespace sluice::rules
