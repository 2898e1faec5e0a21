// What approximate_cells.h promises: exact bounds for each key, and room for the others.

#include "store/local/approximate_cells.h"

#include "store/local/table_fixture.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <iostream>
#include <random>
#include <thread>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;
using Mode = ApproximateCells::Mode;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kBegin = std::int64_t{86'400} * 1000 * kSecond;

struct Cells {
  explicit Cells(std::size_t lines) : words((1 + lines) * ApproximateCells::kCellsPerLine) {}

  bool admits(std::uint64_t key, const CellMeter& meter, Now now, Cost cost = 1) {
    return cells.count(numbered_key(key), meter, cost, Mode::decide, now).decision.allowed();
  }
  Cost used(std::uint64_t key, const CellMeter& meter, Now now) {
    return cells.level(numbered_key(key), meter, now).units;
  }

  std::vector<std::uint64_t> words;
  ApproximateCells cells{words};
};

CellMeter bucket(std::uint64_t amount, Nanos period) {
  return CellMeter::of({.algorithm = Algorithm::gcra, .amount = amount, .period = period});
}

// A meter never admits more than the limit it stands for: its unit rounds up.
TEST(CellMeter, KeepsToTheRateOfItsLimit) {
  const auto expect_rate = [](const Limit& limit, Nanos period) {
    const CellMeter meter = CellMeter::of(limit);
    ASSERT_TRUE(meter.exists());
    EXPECT_GE(Int128{meter.unit} * limit.amount, Int128{period.count()} << kCellTickBits);
    EXPECT_EQ(meter.capacity, meter.unit * std::int64_t{meter.burst});
    EXPECT_GE(meter.full, meter.capacity);
    EXPECT_LT(meter.full, std::int64_t{1} << 62U);
  };
  expect_rate({.algorithm = Algorithm::gcra, .amount = 1'000'000'000, .period = 1s}, 1s);
  expect_rate({.algorithm = Algorithm::gcra, .amount = 3, .period = 1s, .burst = 7}, 1s);
  expect_rate({.algorithm = Algorithm::sliding_log, .amount = 4096, .period = 1ms}, 1ms);
  expect_rate({.algorithm = Algorithm::fixed_window, .amount = 1, .period = core::kPeriodMax},
              core::kPeriodMax);
  expect_rate({.algorithm = Algorithm::fixed_window,
               .amount = 1000,
               .align = Align::calendar,
               .unit = CalendarUnit::month},
              24h * 31);
  expect_rate({.algorithm = Algorithm::leaky_bucket, .amount = 1, .period = 1s, .max_delay = 24h},
              1s);
  EXPECT_FALSE(
      CellMeter::of({.algorithm = Algorithm::concurrency, .amount = 5, .slot_ttl = 60s}).exists());
}

TEST(Cells, CountLikeABucketOfTheLimitsOwn) {
  Cells cells{4};
  const CellMeter meter = bucket(5, 10s);
  EXPECT_FALSE(cells.cells.busy(at(kBegin)));
  for (Cost used = 1; used <= 5; ++used) {
    const Outcome outcome = cells.cells.count(numbered_key(1), meter, 1, Mode::decide, at(kBegin));
    ASSERT_TRUE(outcome.decision.allowed());
    EXPECT_EQ(outcome.decision.limit, 5U);
    EXPECT_EQ(outcome.decision.remaining, 5U - used);
    EXPECT_EQ(outcome.decision.reset_after, Nanos{2s} * used);
  }
  EXPECT_TRUE(cells.cells.busy(at(kBegin)));
  const Decision refused =
      cells.cells.count(numbered_key(1), meter, 1, Mode::decide, at(kBegin)).decision;
  EXPECT_EQ(refused.verdict, Verdict::rejected);
  EXPECT_EQ(refused.retry_after, Nanos{2s});
  EXPECT_FALSE(cells.admits(1, meter, at(kBegin + 2 * kSecond - 1)));
  EXPECT_TRUE(cells.admits(1, meter, at(kBegin + 2 * kSecond)));
  EXPECT_FALSE(cells.cells.busy(at(kBegin + 20 * kSecond)));
  EXPECT_EQ(cells.used(1, meter, at(kBegin + 20 * kSecond)), 0U);
}

TEST(Cells, ForcedChargesSaturateAndLooksWriteNothing) {
  Cells cells{4};
  const CellMeter meter = bucket(5, 10s);
  (void)cells.cells.count(numbered_key(1), meter, 3, Mode::look, at(kBegin));
  EXPECT_EQ(cells.used(1, meter, at(kBegin)), 0U);
  (void)cells.cells.count(numbered_key(1), meter, 3, Mode::force, at(kBegin));
  EXPECT_EQ(cells.used(1, meter, at(kBegin)), 3U);
  (void)cells.cells.count(numbered_key(1), meter, 1000, Mode::force, at(kBegin));
  EXPECT_EQ(cells.used(1, meter, at(kBegin)), 5U);
}

TEST(Cells, HoldRequestsOfAQueue) {
  Cells cells{4};
  const CellMeter meter = CellMeter::of(
      {.algorithm = Algorithm::leaky_bucket, .amount = 1, .period = 1s, .max_delay = 2s});
  for (const Nanos delay : {Nanos{0s}, Nanos{1s}, Nanos{2s}}) {
    const Decision decision =
        cells.cells.count(numbered_key(1), meter, 1, Mode::decide, at(kBegin)).decision;
    ASSERT_TRUE(decision.allowed());
    EXPECT_EQ(decision.delay, delay);
  }
  EXPECT_FALSE(cells.admits(1, meter, at(kBegin)));
}

// One line for ten keys: five have cells of their own, the others share one.
TEST(Cells, RefundTheNewestChargeAndNoOther) {
  Cells cells{1};
  const CellMeter meter = bucket(100, 100s);
  for (std::uint64_t key = 0; key < 10; ++key) {
    const auto charge = [&](Cost cost) {
      return cells.cells.count(numbered_key(key), meter, cost, Mode::decide, at(kBegin)).receipt;
    };
    const auto refund = [&](const Receipt& receipt, Cost cost) {
      ASSERT_TRUE(ApproximateCells::issued(receipt));
      cells.cells.refund(numbered_key(key), meter, receipt, cost, at(kBegin));
    };
    const Cost before = cells.used(key, meter, at(kBegin));
    const Receipt first = charge(3);
    const Receipt second = charge(4);
    refund(first, 3);  // void: something was charged after it
    EXPECT_EQ(cells.used(key, meter, at(kBegin)), before + 7);
    refund(second, 4);
    refund(second, 4);  // once
    EXPECT_EQ(cells.used(key, meter, at(kBegin)), before + 3);
  }
}

TEST(Cells, ForgetAKeysOwnCell) {
  Cells cells{4};
  const CellMeter meter = bucket(5, 10s);
  (void)cells.admits(1, meter, at(kBegin), 4);
  cells.cells.forget(numbered_key(1));
  EXPECT_EQ(cells.used(1, meter, at(kBegin)), 0U);
}

// A flood under a day quota fills what its keys share. Keys under a limit per second that come
// behind it are not blocked for a day.
TEST(Cells, OfLongLimitsDoNotBlockShortOnes) {
  Cells cells{1};
  const CellMeter day = bucket(2, 24h);
  const CellMeter second = bucket(2, 1s);
  for (std::uint64_t key = 0; key < 1000; ++key) (void)cells.admits(key, day, at(kBegin));
  EXPECT_FALSE(cells.admits(5000, day, at(kBegin)));
  EXPECT_TRUE(cells.admits(6000, second, at(kBegin)));
}

// ---- the two promises -------------------------------------------------------------------------

// However many keys there are, and whatever they do: no key is admitted more than its meter allows.
TEST(Cells, AdmitNoKeyMoreThanItsMeter) {
  constexpr std::uint64_t kKeys = 400;
  const std::array meters{bucket(1, 1s), bucket(2, 3600s), bucket(100, 60s), bucket(10, 10s)};
  std::minstd_rand random{7};
  for (const std::size_t lines : {1U, 8U, 200U}) {
    Cells cells{lines};
    std::vector<std::uint64_t> tat(kKeys);  // of an exact meter beside each
    std::int64_t now = kBegin;
    for (int i = 0; i < 60'000; ++i) {
      now += static_cast<std::int64_t>(random() % 20'000'000);
      const std::uint64_t key = random() % 4 == 0 ? random() % 8 : random() % kKeys;
      const CellMeter& meter = meters[key % meters.size()];
      const Cost cost = 1 + static_cast<Cost>(random() % std::min<std::uint64_t>(meter.burst, 3));
      if (!cells.admits(key, meter, at(now), cost)) continue;
      const auto ticks = static_cast<std::uint64_t>(now) << kCellTickBits;
      const auto ahead = std::max<std::int64_t>(static_cast<std::int64_t>(tat[key] - ticks), 0);
      tat[key] = ticks + static_cast<std::uint64_t>(ahead + std::int64_t{cost} * meter.unit);
      ASSERT_LE(ahead + std::int64_t{cost} * meter.unit, meter.full) << "key " << key;
    }
  }
}

// A quarter as many keys as cells, some of them at their limits all the time: of the others, which
// stay below half, ninety-nine of a hundred are never rejected.
TEST(Cells, AtAQuarterOfTheirNumberLetLightKeysPass) {
  constexpr std::size_t kLines = 4096;
  const std::array meters{bucket(20, 1s), bucket(100, 60s), bucket(2, 3600s), bucket(1000, 24h)};
  for (const std::uint64_t heavy_percent : {0U, 50U, 90U}) {
    Cells cells{kLines};
    const std::uint64_t keys = cells.cells.size() / 4;
    const std::uint64_t heavy = keys * heavy_percent / 100;
    std::uint64_t light_rejected = 0;
    for (std::uint64_t key = 0; key < keys; ++key) {
      // Heavy and light ones come mixed.
      const bool is_heavy = key * heavy / keys != (key + 1) * heavy / keys;
      const CellMeter& meter = meters[key / 7 % meters.size()];
      const Cost most = is_heavy ? meter.burst + 1 : std::max<Cost>((meter.burst - 1) / 2, 1);
      bool rejected = false;
      for (Cost i = 0; i < most; ++i) rejected |= !cells.admits(key, meter, at(kBegin));
      light_rejected += !is_heavy && rejected ? 1U : 0U;
      if (is_heavy) {
        EXPECT_TRUE(rejected);
      }
    }
    const std::uint64_t light = keys - heavy;
    std::cout << heavy_percent << " % heavy: " << light_rejected << " of " << light
              << " light keys rejected\n";
    EXPECT_LE(100 * light_rejected, light);
  }
}

// ---- threads ----------------------------------------------------------------------------------

// Time stands still. Each key is known before the threads come, so that they agree on its cell.
TEST(Cells, AdmitExactlyTheLimitBetweenThreads) {
  constexpr int kThreads = 4;
  constexpr std::uint64_t kKeys = 12;  // of one line: some have a cell, the others share
  Cells cells{1};
  const CellMeter meter = bucket(300, 3600s);
  std::array<std::atomic<std::uint64_t>, kKeys> admitted{};
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    admitted[key] += cells.admits(key, meter, at(kBegin)) ? 1U : 0U;
  }
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        for (std::uint64_t key = 0; key < kKeys; ++key) {
          admitted[key] += cells.admits(key, meter, at(kBegin)) ? 1U : 0U;
        }
      }
    });
  }
  threads.clear();
  std::uint64_t own = 0;
  std::uint64_t shared = 0;
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    const bool has_cell = cells.cells.level(numbered_key(key), meter, at(kBegin)).own;
    if (has_cell) {
      EXPECT_EQ(admitted[key], 300U);
      ++own;
    } else {
      shared += admitted[key];
    }
  }
  EXPECT_EQ(own, ApproximateCells::kOwnCells);
  EXPECT_EQ(shared, 300U);
}

}  // namespace
}  // namespace sluice::store
