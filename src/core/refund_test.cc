// Refunds, in any order and at any time, leave the bound of the charges that remain.
#include "support/property.h"
#include "support/raw_key.h"
#include "support/traffic.h"
#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>
#include <sluice/core/meter.h>
#include <sluice/int128.h>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

namespace sluice::core {
namespace {

using namespace std::chrono_literals;
using sluice::testing::at;
using sluice::testing::Beat;
using sluice::testing::between;
using sluice::testing::check_property;
using sluice::testing::compiled;
using sluice::testing::Envelope;
using sluice::testing::kYear;
using sluice::testing::later;
using sluice::testing::RawKey;
using sluice::testing::Scale;
using sluice::testing::scale_of;
using sluice::testing::traffic;

// Where a meter's clock stands, in ticks.
std::int64_t ticks_at(const GcraLimit& limit, Now now) {
  return static_cast<std::int64_t>(gcra_ticks(limit, now.mono));
}
std::int64_t ticks_at(const IntervalLimit& limit, Now now) {
  return floor_div(now.wall().time_since_epoch().count(), limit.period.count()) * limit.amount;
}

// What a charge still counts for, in ticks, after its refunds.
struct Charge {
  std::int64_t released = 0;  // when it was passed on, which for a queued one is after it came
  std::int64_t net = 0;
  Receipt receipt;
  Cost refundable = 0;
};

// Between any two releases, no more was charged for good than the capacity and what drained.
void expect_envelope(const Meter& meter, std::vector<Charge> charges) {
  std::ranges::sort(charges, {}, &Charge::released);
  for (std::size_t i = 0; i < charges.size(); ++i) {
    std::int64_t sum = 0;
    for (std::size_t j = i; j < charges.size(); ++j) {
      sum += charges[j].net;
      RC_ASSERT(sum <= meter.capacity + charges[j].released - charges[i].released);
    }
  }
}

// Random charges, forced ones among them, and refunds of random parts of random charges.
template <class Compiled>
void expect_bound_with_refunds(const Limit& limit) {
  const auto numbers = std::get<Compiled>(compiled(limit));
  const Meter& meter = numbers.meter;
  Scale scale = scale_of(limit);
  scale.longest_gap = std::min(kYear / 50, 4 * scale.period);
  std::int64_t now = static_cast<std::int64_t>(*between(0, std::uint64_t{kYear} / 2));
  RawKey<Compiled> key{numbers, at(now)};
  const auto level = [&] {
    return meter_level(meter, key.state(), static_cast<std::uint64_t>(ticks_at(numbers, at(now))));
  };
  std::vector<Charge> charges;
  for (const Beat& beat : *traffic(scale)) {
    now += beat.gap;
    const std::uint64_t action = *between(0, charges.empty() ? 1 : 4);
    const std::int64_t before = level();
    if (action >= 2) {
      Charge& charge = charges[*between(0, charges.size() - 1)];
      const auto amount = static_cast<Cost>(*between(0, charge.refundable));
      key.refund(at(now), charge.receipt, amount);
      // With a queue, a receipt is good for one refund: what is left after it may stand behind
      // releases that the level no longer shows.
      charge.refundable = meter.full > meter.capacity ? 0 : charge.refundable - amount;
      const std::int64_t given = before - level();
      RC_ASSERT(given >= 0);
      RC_ASSERT(given <= std::int64_t{amount} * meter.unit);
      RC_ASSERT(given <= charge.net);
      charge.net -= given;
      continue;
    }
    const bool forced = action == 1 && *between(0, 3) == 0;
    const Outcome outcome =
        forced ? key.charge(at(now), beat.cost) : key.decide(at(now), beat.cost);
    if (!outcome.decision.allowed() || beat.cost == 0) continue;
    const std::int64_t held = std::max<std::int64_t>(level() - meter.capacity, 0);
    charges.push_back({.released = ticks_at(numbers, at(now)) + held,
                       .net = level() - before,
                       .receipt = outcome.receipt,
                       .refundable = outcome.receipt.cost});
  }
  expect_envelope(meter, charges);
}

TEST(Refunds, InAnyOrderKeepTheBoundOfABucket) {
  check_property(6000, [] {
    Limit limit = *sluice::testing::bucket_limits();
    limit.count_rejected = false;
    expect_bound_with_refunds<GcraLimit>(limit);
  });
}

TEST(Refunds, InAnyOrderKeepTheBoundOfAnIntervalBucket) {
  check_property(6000, [] {
    Limit limit = *sluice::testing::interval_limits();
    limit.count_rejected = false;
    expect_bound_with_refunds<IntervalLimit>(limit);
  });
}

// Those who were promised a release keep it, so a refund must not let anybody in beside them.
TEST(Refunds, OfAReleasedRequestLetsNobodyInBesideThoseInTheQueue) {
  Limit of{.algorithm = Algorithm::leaky_bucket, .amount = 1, .period = 1s};
  of.max_delay = 10s;
  const CompiledLimit limit = compiled(of);
  const std::int64_t start = Nanos{1h}.count();
  Cell cell;
  const Receipt a = cell.decide(limit, at(start), 1).receipt;
  ASSERT_EQ(cell.decide(limit, at(start), 1).decision.delay, 1s);
  ASSERT_EQ(cell.decide(limit, at(start), 1).decision.delay, 2s);
  cell.refund(limit, at(start + Nanos{500ms}.count()), a, 1);
  const Decision d = cell.decide(limit, at(start + Nanos{500ms}.count()), 1).decision;
  ASSERT_TRUE(d.allowed());
  EXPECT_GE(500ms + d.delay, 3s);
}

// Whole requests are refunded, in any order, while others wait: the others leave no faster than the
// bucket leaks.
TEST(Refunds, InAnyOrderKeepTheBoundOfReleases) {
  check_property(6000, [] {
    Limit limit = *sluice::testing::bucket_limits();
    limit.algorithm = Algorithm::leaky_bucket;
    limit.count_rejected = false;
    limit.max_delay =
        std::min<Nanos>(kDelayMax, limit.period / static_cast<std::int64_t>(limit.amount) *
                                       static_cast<std::int64_t>(*between(0, 12)));
    const CompiledLimit numbers = compiled(limit);
    std::int64_t now = static_cast<std::int64_t>(*between(0, std::uint64_t{kYear}));
    Cell cell;
    struct Passed {
      std::int64_t released;
      Receipt receipt;
    };
    std::vector<Passed> passed;
    for (const Beat& beat : *traffic(scale_of(limit))) {
      now += beat.gap;
      if (!passed.empty() && *between(0, 2) == 0) {
        const auto which =
            passed.begin() + static_cast<std::ptrdiff_t>(*between(0, passed.size() - 1));
        cell.refund(numbers, at(now), which->receipt, which->receipt.cost);
        passed.erase(which);
        continue;
      }
      const Outcome outcome = cell.decide(numbers, at(now), beat.cost);
      if (outcome.receipt.cost == 0) continue;
      passed.push_back({now + outcome.decision.delay.count(), outcome.receipt});
    }
    Envelope envelope;
    for (const Passed& one : passed) envelope.admit(one.released, one.receipt.cost);
    RC_ASSERT(envelope.densest(limit.period.count()) <= most_admitted(limit));
  });
}

// Refunds move marks ahead of the clock. A cell that drops a drained bucket must not forget by how
// much, or a receipt of long ago names what was charged just now.
TEST(Refunds, OfADrainedChargeErasesNothingAfterManyRefundsAndALongIdleTime) {
  const CompiledLimit limit =
      compiled({.algorithm = Algorithm::token_bucket, .amount = 10, .period = 1s});
  const std::int64_t start = Nanos{1h}.count();
  Cell cell;
  for (int i = 0; i < 2000; ++i) {
    const Outcome taken = cell.decide(limit, at(start), 10);
    ASSERT_TRUE(taken.decision.allowed());
    cell.refund(limit, at(start), taken.receipt, 10);
  }
  const Outcome old = cell.decide(limit, at(start), 10);
  ASSERT_TRUE(old.decision.allowed());
  const std::int64_t later = start + Nanos{120s}.count();
  ASSERT_TRUE(cell.decide(limit, at(later), 10).decision.allowed());
  cell.refund(limit, at(later), old.receipt, 10);
  EXPECT_EQ(cell.decide(limit, at(later), 0).decision.remaining, 0U);
  EXPECT_FALSE(cell.decide(limit, at(later), 1).decision.allowed());
}

// The same for any bucket and any idle time from the drain on, round after round.
TEST(Refunds, OfDrainedChargesEraseNothingWhateverWasRefundedBefore) {
  check_property(3000, [] {
    Limit limit = *sluice::testing::bucket_limits();
    limit.count_rejected = false;
    const CompiledLimit numbers = compiled(limit);
    const auto& bucket = std::get<GcraLimit>(numbers);
    const auto full = static_cast<Cost>(capacity(limit));
    const std::int64_t drain = gcra_wait(bucket, bucket.meter.full).count();
    std::int64_t now = static_cast<std::int64_t>(*between(0, std::uint64_t{kYear}));
    Cell cell;
    std::vector<Receipt> old;
    for (std::uint64_t rounds = *between(1, 4); rounds > 0; --rounds) {
      for (std::uint64_t i = *between(0, 20); i > 0; --i) {
        const Outcome taken =
            cell.decide(numbers, at(now), static_cast<Cost>(*between(full / 2, full)));
        const auto amount = *rc::gen::element(taken.receipt.cost, taken.receipt.cost / 2);
        cell.refund(numbers, at(now), taken.receipt, amount);
        old.push_back(taken.receipt);
        old.back().cost -= amount;
      }
      old.push_back(cell.decide(numbers, at(now), 1).receipt);
      now += drain;
      now += *rc::gen::oneOf(
          rc::gen::element<std::int64_t>(0, 1, Nanos{kClockStep}.count(),
                                         Nanos{kClockStep}.count() + 1),
          rc::gen::cast<std::int64_t>(sluice::testing::magnitude(
              0, std::min(std::uint64_t{3 * kYear}, 20 * static_cast<std::uint64_t>(drain)))));
      const Outcome all = cell.decide(numbers, at(now), full);
      RC_ASSERT(all.decision.allowed());
      RC_ASSERT(all.decision.delay == 0ns);
      const Decision before = sluice::testing::peek(cell, numbers, now);
      for (const Receipt& receipt : old) cell.refund(numbers, at(now), receipt, receipt.cost);
      RC_ASSERT(sluice::testing::peek(cell, numbers, now) == before);
      old.assign(1, all.receipt);
    }
  });
}

// A and B are charged, A is refunded at once. B then sits where A was, drains in A's time, and must
// not be refunded out of C, which came later.
TEST(Refunds, LateRefundAfterAnEarlierOneMustNotEraseALaterCharge) {
  const CompiledLimit limit =
      compiled({.algorithm = Algorithm::token_bucket, .amount = 10, .period = 10s});
  Cell cell;
  const std::int64_t start = Nanos{1h}.count();
  const Receipt a = cell.decide(limit, at(start), 5).receipt;
  const Receipt b = cell.decide(limit, at(start), 5).receipt;
  cell.refund(limit, at(start), a, 5);
  const std::int64_t later = start + Nanos{6s}.count();
  ASSERT_EQ(cell.decide(limit, at(later), 10).decision.remaining, 0U);
  cell.refund(limit, at(later), b, 5);
  EXPECT_FALSE(cell.decide(limit, at(later), 1).decision.allowed());
}

// Half of the charge has drained, so half of it comes back.
TEST(Refunds, BucketGivesBackWhatHasNotDrained) {
  const CompiledLimit limit =
      compiled({.algorithm = Algorithm::token_bucket, .amount = 10, .period = 10s});
  Cell cell;
  const std::int64_t start = Nanos{1h}.count();
  const Receipt all = cell.decide(limit, at(start), 10).receipt;
  const std::int64_t half = start + Nanos{5s}.count();
  cell.refund(limit, at(half), all, 10);
  EXPECT_EQ(cell.decide(limit, at(half), 0).decision.remaining, 10U);
  ASSERT_TRUE(cell.decide(limit, at(half), 10).decision.allowed());
  cell.refund(limit, at(half), all, 10);  // and again: the half that drained is gone for good
  EXPECT_EQ(cell.decide(limit, at(half), 0).decision.remaining, 0U);
}

// A receipt that a clock set back has left in the future names nothing any more.
TEST(Refunds, ReceiptFromBeforeTheClockWasSetBackErasesNothingLater) {
  for (const sluice::testing::Subject& subject : sluice::testing::all_subjects()) {
    SCOPED_TRACE(subject.name);
    const CompiledLimit limit = compiled(subject.limit);
    std::int64_t now = 30 * kYear;
    Cell cell;
    const auto exhaust = [&] {
      std::vector<Receipt> receipts;
      for (Outcome taken = cell.decide(limit, at(now), 1); taken.decision.allowed();
           taken = cell.decide(limit, at(now), 1)) {
        receipts.push_back(taken.receipt);
      }
      return receipts;
    };
    const std::vector<Receipt> before = exhaust();
    now -= subject.limit.period > 24h ? 6 * kYear : kYear / 2;
    ASSERT_FALSE(cell.decide(limit, at(now), 1).decision.allowed());
    now += cell.decide(limit, at(now), 0).decision.reset_after.count();
    ASSERT_FALSE(exhaust().empty());
    for (const Receipt& receipt : before) cell.refund(limit, at(now), receipt, receipt.cost);
    EXPECT_FALSE(cell.decide(limit, at(now), 1).decision.allowed());
  }
}

// Counting algorithms: what was refunded aside, no window ever holds more than its bound.
TEST(Refunds, InAnyOrderKeepTheBoundOfWindowsAndLogs) {
  check_property(6000, [] {
    const Algorithm algorithm =
        *rc::gen::element(Algorithm::fixed_window, Algorithm::sliding_log,
                          Algorithm::sliding_counter, Algorithm::sliding_buckets);
    Limit limit = *sluice::testing::limits_of(algorithm);
    limit.count_rejected = false;
    const bool first_request = algorithm == Algorithm::fixed_window && *rc::gen::arbitrary<bool>();
    if (first_request) limit.align = Align::first_request;
    const CompiledLimit numbers = compiled(limit);
    std::int64_t now = *sluice::testing::starts(limit.period.count());
    Cell cell;
    std::vector<std::pair<std::int64_t, Receipt>> charges;
    for (const Beat& beat : *traffic(scale_of(limit))) {
      now = later(now, beat.gap);
      if (!charges.empty() && *between(0, 2) == 0) {
        Receipt& receipt = charges[*between(0, charges.size() - 1)].second;
        const auto amount = static_cast<Cost>(*between(0, receipt.cost));
        cell.refund(numbers, at(now), receipt, amount);
        receipt.cost -= amount;
        continue;
      }
      const Outcome outcome = cell.decide(numbers, at(now), beat.cost);
      if (outcome.receipt.cost > 0) charges.emplace_back(now, outcome.receipt);
    }
    Envelope envelope;
    for (const auto& [when, receipt] : charges) envelope.admit(when, receipt.cost);
    const std::uint64_t bound = first_request ? 2 * limit.amount : most_admitted(limit);
    RC_ASSERT(envelope.densest(limit.period.count()) <= bound);
  });
}

}  // namespace
}  // namespace sluice::core
