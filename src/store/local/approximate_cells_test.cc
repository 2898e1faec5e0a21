// What approximate_cells.h promises: exact bounds for each key, and room for the others.

#include "store/local/approximate_cells.h"

#include "store/local/table_fixture.h"
#include "support/child.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <iostream>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;
using Mode = ApproximateCells::Mode;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kBegin = std::int64_t{86'400} * 1000 * kSecond;

struct Cells {
  explicit Cells(std::size_t groups) : words((1 + groups) * ApproximateCells::kCellsPerGroup) {}

  bool admits(std::uint64_t key, const CellMeter& meter, Now now, Cost cost = 1) {
    return cells.count(numbered_key(key), meter, cost, Mode::decide, now).decision.allowed();
  }
  Cost used(std::uint64_t key, const CellMeter& meter, Now now) {
    const Outcome look = cells.count(numbered_key(key), meter, 0, Mode::look, now);
    return meter.burst - static_cast<Cost>(look.decision.remaining);
  }

  std::vector<std::uint64_t> words;
  ApproximateCells cells{words};
};

CellMeter bucket(std::uint64_t amount, Nanos period) {
  return CellMeter::of({.algorithm = Algorithm::gcra, .amount = amount, .period = period});
}

// Neither scale of a meter drains faster than the limit it stands for, or admits more at once:
// units round up.
TEST(CellMeter, KeepsToTheRateOfItsLimit) {
  const auto expect_rate = [](const Limit& limit, Nanos period) {
    const CellMeter meter = CellMeter::of(limit);
    ASSERT_TRUE(meter.exists());
    for (const CellScale& scale : {meter.own, meter.shared}) {
      EXPECT_GE(Int128{scale.unit} * limit.amount, Int128{period.count()} << kCellTickBits);
      EXPECT_LE(scale.capacity, scale.unit * std::int64_t{meter.burst});
      EXPECT_EQ(scale.capacity % scale.unit, 0);
      EXPECT_GE(scale.full, scale.capacity);
      EXPECT_LT(scale.full, std::int64_t{1} << 62U);
    }
    EXPECT_EQ(meter.own.capacity, meter.own.unit * std::int64_t{meter.burst});
    EXPECT_EQ(meter.own.unit % (std::int64_t{1} << meter.shift), 0);
    EXPECT_EQ(meter.own.full % (std::int64_t{1} << meter.shift), 0);
    EXPECT_LT(meter.own.full >> meter.shift, std::int64_t{1} << 37U);
    EXPECT_LT(meter.shift, 32);
  };
  expect_rate({.algorithm = Algorithm::gcra, .amount = 1'000'000'000, .period = 1s}, 1s);
  expect_rate({.algorithm = Algorithm::gcra, .amount = 3, .period = 1s, .burst = 7}, 1s);
  expect_rate({.algorithm = Algorithm::gcra,
               .amount = 500'000'000,
               .period = core::kPeriodMax,
               .burst = 998'000'000},
              core::kPeriodMax);
  expect_rate({.algorithm = Algorithm::token_bucket,
               .amount = 500'000'001,
               .period = core::kPeriodMax,
               .burst = 998'000'000,
               .refill = Refill::interval},
              core::kPeriodMax);
  expect_rate({.algorithm = Algorithm::sliding_log, .amount = 4096, .period = 1ms}, 1ms);
  expect_rate({.algorithm = Algorithm::fixed_window, .amount = 1, .period = core::kPeriodMax},
              core::kPeriodMax);
  expect_rate({.algorithm = Algorithm::sliding_buckets,
               .amount = 1'000'000'000,
               .period = core::kPeriodMax},
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

// What the bound of approximate_cells.h adds up, for every small amount: what a shared cell admits
// in a period, and what the own one drains in it.
TEST(CellMeter, SharesNoMoreThanTheBoundLeaves) {
  const auto expect_bound = [](const Limit& limit) {
    const CellMeter meter = CellMeter::of(limit);
    const std::int64_t period = limit.period.count() << kCellTickBits;
    const auto drained = [&](const CellScale& scale) {  // whole units within less than the period
      return static_cast<std::uint64_t>((period - 1) / scale.unit);
    };
    const auto at_once = static_cast<std::uint64_t>(meter.shared.capacity / meter.shared.unit);
    const bool continuous = limit.algorithm == Algorithm::gcra;
    const std::uint64_t own_drained = continuous ? 0 : drained(meter.own);
    EXPECT_LE(at_once + drained(meter.shared) + own_drained, core::most_admitted(limit))
        << limit.amount << ", algorithm " << static_cast<int>(limit.algorithm);
    EXPECT_GE(at_once, 1U);
  };
  for (std::uint64_t amount = 1; amount <= 200; ++amount) {
    for (const Algorithm algorithm :
         {Algorithm::gcra, Algorithm::fixed_window, Algorithm::sliding_log,
          Algorithm::sliding_counter, Algorithm::sliding_buckets}) {
      expect_bound({.algorithm = algorithm, .amount = amount, .period = 10s});
    }
    expect_bound({.algorithm = Algorithm::fixed_window,
                  .amount = amount,
                  .period = 10s,
                  .align = Align::first_request});
    for (const std::uint64_t burst : {std::uint64_t{1}, std::uint64_t{50}, amount, 5 * amount}) {
      expect_bound({.algorithm = Algorithm::token_bucket,
                    .amount = amount,
                    .period = 10s,
                    .burst = burst,
                    .refill = Refill::interval});
      expect_bound({.algorithm = Algorithm::gcra, .amount = amount, .period = 10s, .burst = burst});
    }
  }
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

// Whatever the figures: a key that is counted in a cell is admitted all of its limit at once, not
// one less.
TEST(Cells, AdmitTheLastUnitOfLimitsThatDoNotDivideEvenly) {
  std::minstd_rand random{13};
  for (int i = 0; i < 2000; ++i) {
    const std::array<Nanos, 5> periods{1s, 60s, 3600s, 24h, 24h * 365};
    const Limit limit{.algorithm = i % 2 == 0 ? Algorithm::gcra : Algorithm::fixed_window,
                      .amount = 1 + random() % 300,
                      .period = periods[random() % periods.size()] - Nanos{random() % 1000}};
    const CellMeter meter = CellMeter::of(limit);
    Cells cells{1};
    const Now now = at(kBegin + static_cast<std::int64_t>(random() % kSecond));
    Cost admitted = 0;
    while (cells.admits(1, meter, now)) ++admitted;
    ASSERT_EQ(admitted, limit.amount) << limit.period.count();
  }
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

// The cost of a response may be far above the limit; the drain time of all of it has no room in 64
// bits.
TEST(Cells, ForcedChargesFarAboveALongLimitSaturate) {
  Cells cells{4};
  const CellMeter meter = bucket(1000, 30 * 24h);
  (void)cells.cells.count(numbered_key(1), meter, 60'000, Mode::force, at(kBegin));
  EXPECT_EQ(cells.used(1, meter, at(kBegin)), 1000U);
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

// One group for twenty keys: thirteen have cells of their own, the others share one. Time stands
// still, so that nothing drains: charges of requests that overlap are given back in full, in any
// order.
TEST(Cells, RefundChargesInAnyOrder) {
  Cells cells{1};
  const CellMeter meter = bucket(100, 100s);
  for (std::uint64_t key = 0; key < 20; ++key) {
    const auto charge = [&](Cost cost) {
      return cells.cells.count(numbered_key(key), meter, cost, Mode::decide, at(kBegin)).receipt;
    };
    const auto refund = [&](const Receipt& receipt, Cost cost) {
      ASSERT_TRUE(ApproximateCells::issued(receipt));
      const ApproximateCells::Refunded refunded =
          cells.cells.refund(numbered_key(key), meter, receipt, cost, at(kBegin));
      EXPECT_EQ(refunded.held, cost);
      EXPECT_EQ(refunded.lost, 0U);
    };
    const Cost before = cells.used(key, meter, at(kBegin));
    const Receipt first = charge(3);
    Receipt second = charge(4);
    const Receipt third = charge(2);
    refund(first, 3);
    EXPECT_EQ(cells.used(key, meter, at(kBegin)), before + 6);
    refund(third, 2);
    EXPECT_EQ(cells.used(key, meter, at(kBegin)), before + 4);
    refund(second, 1);
    second.cost -= 1;
    refund(second, 3);
    EXPECT_EQ(cells.used(key, meter, at(kBegin)), before);
    (void)charge(1);
  }
}

// A refund never gives back more than its own charge still holds, whatever was charged and refunded
// meanwhile; it gives back at least the charge less what drained since; and what it kept is told.
TEST(Cells, RefundNoMoreThanTheChargeHoldsAndAtLeastWhatCannotHaveDrained) {
  std::minstd_rand random{17};
  const CellMeter meter = bucket(50, 50s);  // one unit per second
  struct Charged {
    std::int64_t at = 0;
    Receipt receipt;
  };
  for (int trial = 0; trial < 300; ++trial) {
    Cells cells{1};
    std::int64_t now = kBegin;
    std::deque<Charged> open;
    std::deque<Charged> stays;  // never refunded
    for (int i = 0; i < 100; ++i) {
      now += static_cast<std::int64_t>(random() % kSecond);
      if (random() % 2 == 0 || open.empty()) {
        const Cost cost = 1 + static_cast<Cost>(random() % 4);
        const Outcome outcome =
            cells.cells.count(numbered_key(1), meter, cost, Mode::decide, at(now));
        if (outcome.decision.allowed()) {
          (random() % 3 == 0 ? stays : open).push_back({now, outcome.receipt});
        }
        continue;
      }
      const std::size_t which = random() % open.size();
      const Charged charged = open[which];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
      const Cost before = cells.used(1, meter, at(now));
      const ApproximateCells::Refunded refunded = cells.cells.refund(
          numbered_key(1), meter, charged.receipt, charged.receipt.cost, at(now));
      const Cost given = before - cells.used(1, meter, at(now));
      const auto drained = static_cast<Cost>((now - charged.at) / kSecond + 1);
      EXPECT_GE(given + drained, charged.receipt.cost);
      EXPECT_LE(refunded.lost, refunded.held);
      EXPECT_GE(given + refunded.lost + 1, refunded.held);
      // What stays charged, alone in a bucket, is there at least.
      std::int64_t tat = 0;
      for (const Charged& one : stays) {
        tat = std::max(tat, one.at) + std::int64_t{one.receipt.cost} * kSecond;
      }
      const std::int64_t left = std::max<std::int64_t>(tat - now, 0);
      ASSERT_GE(std::int64_t{cells.used(1, meter, at(now))} * kSecond, left);
    }
  }
}

TEST(Cells, ForgetAKeysOwnCell) {
  Cells cells{4};
  const CellMeter meter = bucket(5, 10s);
  (void)cells.admits(1, meter, at(kBegin), 4);
  cells.cells.forget(numbered_key(1));
  EXPECT_EQ(cells.used(1, meter, at(kBegin)), 0U);
}

// A key gives up a slot, which held more than its cell, or less: the two count the same usage. If
// the slot admitted what the cell rejects, nothing moves.
TEST(Cells, BeginWithWhatASlotHeld) {
  const CellMeter meter = bucket(10, 10s);
  const auto remaining = [&](Cost in_cell, Cost in_slot, Cost cost) {
    Cells cells{4};
    if (in_cell > 0) (void)cells.admits(1, meter, at(kBegin), in_cell);
    const Outcome outcome = cells.cells.count(numbered_key(1), meter, cost, Mode::decide,
                                              at(kBegin), {.units = in_slot});
    EXPECT_EQ(outcome.decision.allowed(), ApproximateCells::issued_by_own(outcome.receipt));
    EXPECT_EQ(outcome.receipt.cost, outcome.decision.allowed() ? cost : 0);
    return 10 - cells.used(1, meter, at(kBegin));
  };
  EXPECT_EQ(remaining(0, 6, 1), 3U);
  EXPECT_EQ(remaining(4, 6, 1), 3U);
  EXPECT_EQ(remaining(6, 4, 1), 3U);
  EXPECT_EQ(remaining(0, 9, 1), 0U);
  EXPECT_EQ(remaining(9, 4, 2), 1U) << "rejected: the cell stays as it was";
  EXPECT_EQ(remaining(1, 9, 2), 9U);
}

TEST(Cells, TakeOverAQueueAndItsDelays) {
  Cells cells{4};
  const CellMeter meter = CellMeter::of(
      {.algorithm = Algorithm::leaky_bucket, .amount = 1, .period = 1s, .max_delay = 5s});
  const Outcome outcome = cells.cells.count(numbered_key(1), meter, 1, Mode::decide, at(kBegin),
                                            {.units = 1, .queued = 2s});
  EXPECT_EQ(outcome.decision.delay, Nanos{3s});
  const auto usage = cells.cells.own_usage(numbered_key(1), meter, at(kBegin));
  EXPECT_EQ(usage.units, 1U);
  EXPECT_EQ(usage.queued, Nanos{3s});
  const Outcome peek = cells.cells.count(numbered_key(1), meter, 0, Mode::look, at(kBegin));
  EXPECT_EQ(peek.decision.delay, Nanos{0}) << "nothing to be released";
}

// What a shared cell counts is no key's own: it takes nothing over, and the receipt says so.
TEST(Cells, ThatAreSharedTakeOverNothing) {
  Cells cells{1};
  const CellMeter meter = bucket(10, 10s);
  for (std::uint64_t key = 0; key < 40; ++key) (void)cells.admits(key, bucket(1, 24h), at(kBegin));
  const Outcome outcome =
      cells.cells.count(numbered_key(1000), meter, 1, Mode::decide, at(kBegin), {.units = 9});
  ASSERT_TRUE(outcome.decision.allowed());
  EXPECT_EQ(outcome.decision.remaining, 9U);
  EXPECT_TRUE(ApproximateCells::issued(outcome.receipt));
  EXPECT_FALSE(ApproximateCells::issued_by_own(outcome.receipt));
}

// ---- time ---------------------------------------------------------------------------------------

constexpr std::int64_t kWraps = std::int64_t{1} << (48U - kCellTickBits);  // an own cell, in ns

// 2.4 hours after it drained, a cell that was never swept seems to have usage. Swept in time, while
// nothing is in use, it has none.
TEST(Cells, ThatDrainedLongAgoAreSweptBeforeTheyWrap) {
  const CellMeter meter = bucket(5, 1s);
  ASSERT_EQ(meter.shift, 0);
  const Now wrapped = at(kBegin + kSecond + kWraps - kSecond / 2);
  for (const bool in_time : {false, true}) {
    Cells cells{1};
    EXPECT_TRUE(cells.admits(1, meter, at(kBegin), 5));
    for (std::int64_t passed = 0; passed < kWraps && in_time;
         passed += ApproximateCells::kSweepWithin.count()) {
      (void)cells.cells.sweep(at(kBegin + passed));
    }
    EXPECT_EQ(cells.used(1, meter, wrapped), in_time ? 0U : 3U);
    // By the header all have drained, however it looks.
    EXPECT_EQ(cells.cells.sweep(wrapped), 0U);
    EXPECT_EQ(cells.used(1, meter, wrapped), 0U);
  }
}

// Another cell is in use all the time, so the header does not tell.
TEST(Cells, ThatWereLeftAloneAreDroppedByTheirAge) {
  Cells cells{1};
  const CellMeter second = bucket(5, 1s);
  const CellMeter day = bucket(5, 24h);
  (void)cells.admits(1, second, at(kBegin), 5);
  (void)cells.admits(2, day, at(kBegin), 5);
  const Now wrapped = at(kBegin + kSecond + kWraps - kSecond / 2);
  cells.cells.drop_drained_within(4s);  // its level could have been higher
  EXPECT_EQ(cells.used(1, second, wrapped), 3U);
  cells.cells.drop_drained_within(5s);
  EXPECT_EQ(cells.used(1, second, wrapped), 0U);
  EXPECT_EQ(cells.used(2, day, wrapped), 5U);
}

// The longest level there may be has no room for what is set ahead.
TEST(Cells, StayInUseForTheLongestLevel) {
  constexpr std::int64_t kAlmost = std::int64_t{15} << 58U;
  constexpr CellScale kScale{.unit = kAlmost, .capacity = kAlmost, .full = kAlmost};
  constexpr CellMeter kMeter{.own = kScale, .shared = kScale, .burst = 1, .shift = 26, .range = 2};
  const auto in_time = testing::in_child([&] {
    ::alarm(20);
    Cells cells{1};
    return cells.admits(1, kMeter, at(kBegin)) && cells.cells.busy(at(kBegin)) ? 0 : 1;
  });
  EXPECT_EQ(in_time, 0);
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

// However many keys there are, and whatever they do: no key is admitted more than its meter allows,
// once in a cell of its own and once in a shared one.
TEST(Cells, AdmitNoKeyMoreThanItsMeter) {
  constexpr std::uint64_t kKeys = 400;
  const std::array meters{bucket(1, 1s), bucket(2, 3600s), bucket(100, 60s), bucket(10, 10s)};
  std::minstd_rand random{7};
  struct Exact {  // a meter beside each key's cells
    std::uint64_t tat = 0;
    std::int64_t add(std::uint64_t now, std::int64_t rise) {
      const auto ahead = std::max<std::int64_t>(static_cast<std::int64_t>(tat - now), 0);
      tat = now + static_cast<std::uint64_t>(ahead + rise);
      return ahead + rise;
    }
  };
  for (const std::size_t groups : {1U, 4U, 100U}) {
    Cells cells{groups};
    std::vector<Exact> own(kKeys);
    std::vector<Exact> shared(kKeys);
    std::int64_t now = kBegin;
    for (int i = 0; i < 60'000; ++i) {
      now += static_cast<std::int64_t>(random() % 20'000'000);
      const std::uint64_t key = random() % 4 == 0 ? random() % 8 : random() % kKeys;
      const CellMeter& meter = meters[key % meters.size()];
      const Cost cost = 1 + static_cast<Cost>(random() % std::min<std::uint64_t>(meter.burst, 3));
      const Outcome outcome =
          cells.cells.count(numbered_key(key), meter, cost, Mode::decide, at(now));
      if (!outcome.decision.allowed()) continue;
      const auto ticks = static_cast<std::uint64_t>(now) << kCellTickBits;
      const std::int64_t rise = std::int64_t{cost} * meter.own.unit;
      auto& exact = ApproximateCells::issued_by_own(outcome.receipt) ? own : shared;
      ASSERT_LE(exact[key].add(ticks, rise), meter.own.full) << "key " << key;
    }
  }
}

// A quarter as many keys as cells, all under one limit and in the worst order: the heavy ones come
// first, use all of their limit and take what cells there are. Of the others, which come last and
// use just less than half of theirs, in one burst, ninety-nine of a hundred are never rejected.
TEST(Cells, AtAQuarterOfTheirNumberLetLightKeysPass) {
  const std::array meters{
      bucket(20, 1s), bucket(5, 3600s), bucket(33, 24h),
      CellMeter::of({.algorithm = Algorithm::fixed_window, .amount = 12, .period = 60s}),
      CellMeter::of({.algorithm = Algorithm::sliding_log, .amount = 30, .period = 60s})};
  for (const CellMeter& meter : meters) {
    for (const std::uint64_t heavy_percent : {0U, 50U, 90U, 95U}) {
      Cells cells{std::size_t{1} << 18U >> 4U};
      const std::uint64_t keys = cells.cells.size() / 4;
      const std::uint64_t heavy = keys * heavy_percent / 100;
      std::uint64_t light_rejected = 0;
      for (std::uint64_t key = 0; key < keys; ++key) {
        const bool is_heavy = key < heavy;
        const Cost used = is_heavy ? meter.burst : (meter.burst - 1) / 2;
        bool rejected = false;
        for (Cost i = 0; i < used; ++i) rejected |= !cells.admits(key, meter, at(kBegin));
        light_rejected += !is_heavy && rejected ? 1U : 0U;
      }
      const std::uint64_t light = keys - heavy;
      std::cout << heavy_percent << " % heavy: " << light_rejected << " of " << light
                << " light keys rejected\n";
      EXPECT_LE(100 * light_rejected, light);
    }
  }
}

// A key that uses just less than half of its limit in every period, for many periods and in
// whatever rhythm, is never rejected by a cell of its own.
TEST(Cells, NeverRejectALightKeyThatHasItsOwn) {
  std::minstd_rand random{11};
  for (const Algorithm algorithm : {Algorithm::gcra, Algorithm::fixed_window,
                                    Algorithm::sliding_log, Algorithm::sliding_counter}) {
    const CellMeter meter = CellMeter::of({.algorithm = algorithm, .amount = 21, .period = 10s});
    Cells cells{1};
    std::deque<std::int64_t> admitted;  // within the last period
    std::int64_t now = kBegin;
    for (int i = 0; i < 2000; ++i) {
      now += static_cast<std::int64_t>(random() % 3 == 0 ? random() % (10 * kSecond) : 0);
      while (!admitted.empty() && admitted.front() <= now - 10 * kSecond) admitted.pop_front();
      if (admitted.size() >= 10) continue;
      ASSERT_TRUE(cells.admits(1, meter, at(now))) << static_cast<int>(algorithm);
      admitted.push_back(now);
    }
  }
}

// ---- threads ----------------------------------------------------------------------------------

// Time stands still. Each key is known before the threads come, so that they agree on its cell.
TEST(Cells, AdmitExactlyTheLimitBetweenThreads) {
  constexpr int kThreads = 4;
  constexpr std::uint64_t kKeys = 20;  // of one group: some have a cell, the others share
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
    if (cells.cells.own_usage(numbered_key(key), meter, at(kBegin)).units > 0) {
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
