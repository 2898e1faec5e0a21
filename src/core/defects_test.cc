// Defects that other rate limiters had, one test for each class.
//
// The numbers are those of the list of known defects. Five classes need more than a step function
// and belong to what comes later:
//   D13 TTL too short, D14 lost TTL: stores that expire keys (Redis authority)
//   D16 compare-and-swap that gives up, D17 unbounded keys, D18 eviction that resets offenders: the
//   local counter table
#include "base/digest.h"
#include "base/random.h"
#include "support/raw_key.h"
#include "support/traffic.h"
#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>
#include <sluice/int128.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace sluice::core {
namespace {

using namespace std::chrono_literals;
using sluice::testing::all_subjects;
using sluice::testing::at;
using sluice::testing::compiled;
using sluice::testing::kYear;
using sluice::testing::peek;
using sluice::testing::Subject;
using sluice::testing::with_raw_key;

constexpr std::int64_t kStart = 30 * kYear;

std::uint64_t take_all(Cell& cell, const CompiledLimit& limit, std::int64_t now) {
  std::uint64_t taken = 0;
  while (cell.decide(limit, at(now), 1).decision.allowed()) ++taken;
  return taken;
}

// The most that may pass between the first and the last of a number of readings.
std::uint64_t most_within(const Limit& limit, std::int64_t first, std::int64_t last) {
  const sluice::testing::Scale scale = sluice::testing::scale_of(limit);
  const auto periods = static_cast<std::uint64_t>(last / scale.period - first / scale.period + 1);
  if (std::holds_alternative<GcraLimit>(compiled(limit))) {
    const std::int64_t queue = limit.max_delay.value_or(0ns).count();
    const Int128 drained = Int128{last + queue - first} * static_cast<std::int64_t>(limit.amount);
    return capacity(limit) + static_cast<std::uint64_t>(drained / scale.period);
  }
  // Calendar windows are at least as long as the period taken here, but for a day in spring.
  if (limit.unit) return (periods + 1) * limit.amount;
  if (limit.refill == Refill::interval) return capacity(limit) + (periods - 1) * limit.amount;
  return periods * limit.amount;
}

// Time order: threads hand in their readings shuffled, up to the step that would be a clock set
// back. Nobody gets more than with sorted ones.
TEST(Defects, D01_ShuffledReadingsAdmitNoMoreThanTheBound) {
  Random random{1};
  for (const Subject& subject : all_subjects()) {
    if (subject.limit.algorithm == Algorithm::concurrency) continue;
    const CompiledLimit limit = compiled(subject.limit);
    const std::int64_t period = sluice::testing::scale_of(subject.limit).period;
    const auto step = static_cast<std::uint64_t>(Nanos{kClockStep}.count());
    for (const std::int64_t span : {period, 5 * period, 4 * Nanos{kClockStep}.count()}) {
      SCOPED_TRACE(subject.name + " over " + std::to_string(span) + " ns");
      // Twenty at a time, late by nothing, by anything and by the most.
      std::vector<std::int64_t> readings;
      for (std::int64_t i = 0; i < 4000; ++i) {
        const std::uint64_t how = random.below(4);
        const std::uint64_t late = how == 0 ? 0 : how == 1 ? step - 1 : random.below(step);
        readings.push_back(kStart + span / 200 * (i / 20) - static_cast<std::int64_t>(late));
      }
      const auto disorder = std::ranges::adjacent_find(readings, std::ranges::greater{});
      ASSERT_NE(disorder, readings.end());
      Cell cell;
      std::uint64_t admitted = 0;
      for (const std::int64_t now : readings) {
        if (cell.decide(limit, at(now), 1).decision.allowed()) ++admitted;
      }
      const auto [first, last] = std::ranges::minmax(readings);
      EXPECT_LE(admitted, most_within(subject.limit, first, last));
      EXPECT_GE(admitted, 1U);
    }
  }
}

// Time order: an older reading must not be stored, or the next one refills for the same time twice.
TEST(Defects, D02_OlderReadingRefillsNothing) {
  for (const Subject& subject : all_subjects()) {
    const CompiledLimit limit = compiled(subject.limit);
    Cell cell;
    take_all(cell, limit, kStart);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_FALSE(cell.decide(limit, at(kStart - 1000), 1).decision.allowed()) << subject.name;
      ASSERT_EQ(peek(cell, limit, kStart).remaining, 0U) << subject.name;
    }
  }
}

// Time order: a reading taken before a window turned over, used after it did, must not clear it.
TEST(Defects, D03_ReadingFromBeforeTheTurnDoesNotClearTheWindow) {
  for (const Subject& subject : all_subjects()) {
    const CompiledLimit limit = compiled(subject.limit);
    Cell cell;
    take_all(cell, limit, kStart - 1);
    take_all(cell, limit, kStart);
    EXPECT_FALSE(cell.decide(limit, at(kStart - 1), 1).decision.allowed()) << subject.name;
    EXPECT_FALSE(cell.decide(limit, at(kStart), 1).decision.allowed()) << subject.name;
  }
}

// Off by one: exactly the capacity passes at once, after exactly a reset and after ages.
TEST(Defects, D04_ExactlyTheCapacityPassesAtOnce) {
  for (const Subject& subject : all_subjects()) {
    const CompiledLimit limit = compiled(subject.limit);
    const auto full = static_cast<Cost>(capacity(subject.limit));
    Cell cell;
    const auto expect_full = [&](std::int64_t now) {
      Cell whole = cell;
      EXPECT_TRUE(whole.decide(limit, at(now), full).decision.allowed()) << subject.name;
      EXPECT_EQ(peek(cell, limit, now).remaining, full) << subject.name;
      const std::uint64_t taken = take_all(cell, limit, now);
      EXPECT_TRUE(subject.limit.max_delay || taken == full) << subject.name;
    };
    expect_full(kStart);
    const std::int64_t later = kStart + peek(cell, limit, kStart).reset_after.count();
    expect_full(later);
    expect_full(later + 5 * kYear);
  }
}

// Overflow: extreme amounts, periods, bursts, costs, and years of idleness.
TEST(Defects, D05_ExtremesDoNotOverflow) {
  for (const std::uint64_t amount : {std::uint64_t{1}, std::uint64_t{3}, kAmountMax}) {
    for (const Nanos period : {kPeriodMin, Nanos{1s}, Nanos{30 * 24h}, kPeriodMax}) {
      for (const std::uint64_t burst : {std::uint64_t{1}, std::uint64_t{10'000}, kAmountMax}) {
        Limit bucket{.algorithm = Algorithm::gcra, .amount = amount, .period = period};
        bucket.burst = burst;
        const Parsed<CompiledLimit> limit = compile(bucket);
        if (!limit) continue;  // refused with a message: fine
        for (const Cost cost : {Cost{1}, static_cast<Cost>(burst), ~Cost{0}}) {
          Cell cell;
          std::int64_t now = 1;
          const Decision first = cell.decide(*limit, at(now), cost).decision;
          EXPECT_EQ(first.verdict, cost > burst ? Verdict::never : Verdict::allowed);
          EXPECT_GE(first.reset_after, 0ns);
          EXPECT_LE(first.remaining, burst);
          cell.charge(*limit, at(now), ~Cost{0});
          EXPECT_FALSE(cell.decide(*limit, at(now), 1).decision.allowed());
          for (const std::int64_t idle : {3 * kYear, 37 * kYear, 200 * kYear}) {
            EXPECT_EQ(peek(cell, *limit, now + idle).remaining, burst);
          }
        }
      }
    }
  }
}

// Drift: fractions that are dropped on every look add up. Ten million polls at random steps admit
// exactly what one comparison with the whole span does.
TEST(Defects, D06_NoDriftOverTenMillionPolls) {
  const Limit limits[] = {
      {.algorithm = Algorithm::token_bucket, .amount = 3, .period = 1s},
      {.algorithm = Algorithm::token_bucket, .amount = 1000, .period = 1s},
      {.algorithm = Algorithm::gcra, .amount = 700'001, .period = 1s},
  };
  for (Limit of : limits) {
    of.burst = 2;
    const auto limit = std::get<GcraLimit>(compiled(of));
    const MonoTime start{Nanos{kStart}};
    GcraState state = gcra_charge(limit, gcra_idle(limit, start), start, 2).state;
    Random random{6};
    MonoTime now = start;
    std::uint64_t admitted = 0;
    const std::uint64_t longest = of.amount > 1000 ? 700 : 400'000;
    for (int i = 0; i < 3'400'000; ++i) {
      now += Nanos{static_cast<std::int64_t>(random.below(longest))};
      const Step<GcraState> step = gcra_step(limit, state, now, 1);
      state = step.state;
      admitted += step.receipt.cost;
    }
    // The backlog was never empty, so every tick of the span drained something.
    const Int128 ticks = Int128{(now - start).count()} << limit.fraction_bits;
    const auto exact = static_cast<std::uint64_t>(ticks / limit.meter.unit);
    EXPECT_GE(admitted + 1, exact) << of.amount;
    EXPECT_LE(admitted, exact) << of.amount;
  }
}

// Remaining and reset: never above the limit, true even when the answer is `never`.
TEST(Defects, D07_RemainingAndResetAreTrueWhateverTheVerdict) {
  for (const Subject& subject : all_subjects()) {
    const CompiledLimit limit = compiled(subject.limit);
    const auto full = static_cast<Cost>(capacity(subject.limit));
    Cell cell;
    const Decision idle = cell.decide(limit, at(kStart), full + 1).decision;
    EXPECT_EQ(idle.verdict, Verdict::never) << subject.name;
    EXPECT_EQ(idle.remaining, full) << subject.name;
    EXPECT_EQ(idle.reset_after, 0ns) << subject.name;
    (void)cell.decide(limit, at(kStart), 1);
    const Decision used = cell.decide(limit, at(kStart), full + 1).decision;
    EXPECT_EQ(used.verdict, Verdict::never) << subject.name;
    EXPECT_EQ(used.remaining, full - 1) << subject.name;
    EXPECT_EQ(used.reset_after, peek(cell, limit, kStart).reset_after) << subject.name;
    EXPECT_GT(used.reset_after, 0ns) << subject.name;
  }
}

// Retry-after: three a second, asked a third into the next token, must not be told too little.
TEST(Defects, D08_RetryAfterCountsThePartialTokenExactly) {
  const CompiledLimit limit =
      compiled({.algorithm = Algorithm::token_bucket, .amount = 3, .period = 1s});
  Cell cell;
  take_all(cell, limit, kStart);
  const std::int64_t partly = kStart + 111'111'111;
  const Decision refused = cell.decide(limit, at(partly), 1).decision;
  EXPECT_EQ(refused.retry_after, 333'333'334ns - 111'111'111ns);
  Cell early = cell;
  EXPECT_FALSE(early.decide(limit, at(kStart + 333'333'333), 1).decision.allowed());
  EXPECT_TRUE(cell.decide(limit, at(kStart + 333'333'334), 1).decision.allowed());
}

// Cost: each from 0 to twice the capacity gets its verdict, and none locks the key.
TEST(Defects, D09_EveryCostGetsItsVerdictAndLocksNobodyOut) {
  for (const Subject& subject : all_subjects()) {
    const CompiledLimit limit = compiled(subject.limit);
    const std::uint64_t full = capacity(subject.limit);
    for (std::uint64_t cost = 0; cost <= 2 * full; ++cost) {
      Cell cell;
      const Decision decision = cell.decide(limit, at(kStart), static_cast<Cost>(cost)).decision;
      EXPECT_EQ(decision.verdict, cost <= full ? Verdict::allowed : Verdict::never) << subject.name;
      EXPECT_EQ(decision.remaining, cost <= full ? full - cost : full) << subject.name;
      EXPECT_EQ(peek(cell, limit, kStart + decision.reset_after.count()).remaining, full)
          << subject.name;
    }
  }
}

// Refusals consume: a hammering client must not push its own next admission away.
TEST(Defects, D10_RefusedRequestsLeaveTheStateBitIdentical) {
  for (const Subject& subject : all_subjects()) {
    if (subject.limit.count_rejected) continue;
    with_raw_key(compiled(subject.limit), at(kStart), [&](auto key) {
      while (key.decide(at(kStart), 1).decision.allowed()) {
      }
      const auto before = key;
      for (int i = 0; i < 1000; ++i) {
        ASSERT_FALSE(key.decide(at(kStart), 1).decision.allowed()) << subject.name;
      }
      EXPECT_TRUE(key == before) << subject.name;
    });
  }
}

// What passes exactly one window after everything was taken. The sliding counter still sees all of
// the previous window, or half of it, or a nanosecond; slices see the one that is partly in sight.
std::uint64_t one_window_on(Algorithm algorithm, std::uint64_t amount, bool at_start,
                            bool half_way) {
  if (algorithm == Algorithm::sliding_buckets) return 0;
  if (algorithm != Algorithm::sliding_counter) return amount;
  if (at_start) return 0;
  return half_way ? amount / 2 : amount - 1;
}

// Window edges: small limits, gaps of one, two and three windows.
TEST(Defects, D11_SmallLimitsWorkAcrossOneTwoAndThreeWindows) {
  using enum Algorithm;
  for (const Algorithm algorithm : {fixed_window, sliding_log, sliding_counter, sliding_buckets}) {
    for (const std::uint64_t amount : {1U, 2U, 3U}) {
      const CompiledLimit limit =
          compiled({.algorithm = algorithm, .amount = amount, .period = 8s});
      const std::int64_t window = Nanos{8s}.count();
      const std::int64_t start = kStart / window * window;
      const auto after = [&](std::int64_t offset, std::int64_t gap) {
        Cell cell;
        EXPECT_EQ(take_all(cell, limit, start + offset), amount);
        EXPECT_EQ(take_all(cell, limit, start + offset), 0U);
        return take_all(cell, limit, start + offset + gap);
      };
      for (const std::int64_t offset : {std::int64_t{0}, window / 2, window - 1}) {
        SCOPED_TRACE(std::string{to_string(algorithm)} + ' ' + std::to_string(amount) + " at " +
                     std::to_string(offset));
        EXPECT_EQ(after(offset, 3 * window), amount);
        EXPECT_EQ(after(offset, 2 * window), amount);
        // One window on, the sliding counter still sees all of the previous window, or half, or a
        // nanosecond of it; slices see the one that is partly in sight.
        const std::uint64_t one = after(offset, window);
        EXPECT_EQ(one, one_window_on(algorithm, amount, offset == 0, offset == window / 2));
        // The window before was looked at, not the one before that, nor none at all.
        if (algorithm != fixed_window && offset == window - 1) {
          EXPECT_EQ(after(offset, 1), 0U);
        }
      }
    }
  }
}

// Log identity: many requests of one nanosecond are many requests.
TEST(Defects, D12_RequestsOfOneNanosecondAllCount) {
  const CompiledLimit limit =
      compiled({.algorithm = Algorithm::sliding_log, .amount = 4096, .period = 1s});
  Cell cell;
  EXPECT_EQ(take_all(cell, limit, kStart), 4096U);
  EXPECT_EQ(peek(cell, limit, kStart + Nanos{1s}.count() - 1).remaining, 0U);
  EXPECT_EQ(peek(cell, limit, kStart + Nanos{1s}.count()).remaining, 4096U);
  // And one each nanosecond: as many entries as the log can hold.
  Cell spread;
  for (std::int64_t i = 0; i < 4096; ++i) {
    ASSERT_TRUE(spread.decide(limit, at(kStart + i), 1).decision.allowed()) << i;
  }
  EXPECT_FALSE(spread.decide(limit, at(kStart + 4096), 1).decision.allowed());
  EXPECT_TRUE(spread.decide(limit, at(kStart + Nanos{1s}.count()), 1).decision.allowed());
}

// Leaked permits: holders that die are forgotten within two lives of a lease, holders that live on
// and renew are not.
TEST(Defects, D15_LeasesOfDeadHoldersComeBack) {
  const ConcurrencyLimit limit{.amount = 10, .slot_ttl = 60s};
  const MonoTime start{Nanos{kStart}};
  ConcurrencyState state;
  Receipt alive;
  for (int i = 0; i < 10; ++i) {
    const Step<ConcurrencyState> taken = concurrency_step(limit, state, start, 1);
    ASSERT_TRUE(taken.decision.allowed());
    state = taken.state;
    alive = taken.receipt;
  }
  MonoTime now = start;
  for (; now < start + 120s; now += 30s) {
    const Step<ConcurrencyState> renewed = concurrency_renew(limit, state, now, alive);
    ASSERT_EQ(renewed.receipt.cost, 1U);
    state = renewed.state;
    alive = renewed.receipt;
    if (now < start + 60s) {
      ASSERT_EQ(renewed.decision.remaining, 0U);
    }
  }
  EXPECT_EQ(concurrency_step(limit, state, now, 0).decision.remaining, 9U);
  // A lease given back late, after it lapsed, takes no other holder's slot.
  const Step<ConcurrencyState> full = concurrency_step(limit, state, now, 9);
  ASSERT_TRUE(full.decision.allowed());
  const Receipt lapsed{.mark = start.time_since_epoch() / limit.slot_ttl, .cost = 1};
  EXPECT_EQ(concurrency_release(limit, full.state, now, lapsed, 1), full.state);
  EXPECT_EQ(concurrency_renew(limit, full.state, now, lapsed).receipt.cost, 0U);
}

// Configuration: whatever is accepted limits. Nothing turns into no limit at all.
TEST(Defects, D19_AnyAcceptedLimitLimits) {
  for (const Algorithm algorithm : kAlgorithms) {
    for (const std::uint64_t amount :
         {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{4096}, std::uint64_t{999'983},
          std::uint64_t{999'999'999}, kAmountMax}) {
      for (const Nanos period :
           {Nanos{0}, kPeriodMin, Nanos{1s} - 1ns, Nanos{1s}, Nanos{7h}, kPeriodMax}) {
        const Limit of{.algorithm = algorithm, .amount = amount, .period = period};
        const Parsed<CompiledLimit> limit = compile(of);
        if (!limit) continue;
        Cell cell;
        const auto full = static_cast<Cost>(capacity(of));
        EXPECT_TRUE(cell.decide(*limit, at(kStart), full).decision.allowed());
        const Decision next = cell.decide(*limit, at(kStart), 1).decision;
        EXPECT_EQ(next.verdict, Verdict::rejected)
            << to_string(algorithm) << ' ' << amount << ' ' << period.count();
      }
    }
  }
}

// Hash: without the secret nobody can make keys collide, and near keys are far apart.
TEST(Defects, D20_DigestsAreKeyedAndDoNotCollide) {
  const DigestSecret secret{.first = 0x0706050403020100, .second = 0x0f0e0d0c0b0a0908};
  const auto digest = [](DigestSecret of, std::string_view bytes) {
    SipHash13 hash{of};
    hash.append(bytes);
    return hash.finish();
  };
  // Inputs that broke weak hashes: runs of zeros, single bits, equal blocks swapped, counters.
  std::vector<std::string> corpus;
  for (std::size_t length = 0; length <= 300; ++length) corpus.emplace_back(length, '\0');
  for (std::size_t bit = 0; bit < 512; ++bit) {
    std::string bytes(64, '\0');
    bytes[bit / 8] = static_cast<char>(1U << (bit % 8));
    corpus.push_back(bytes);
  }
  for (int i = 0; i < 100'000; ++i) corpus.push_back("user-" + std::to_string(i));
  std::set<std::uint64_t> lows;
  std::set<std::uint64_t> highs;
  for (const std::string& bytes : corpus) {
    lows.insert(digest(secret, bytes).low);
    highs.insert(digest(secret, bytes).high);
  }
  EXPECT_EQ(lows.size(), corpus.size());
  EXPECT_EQ(highs.size(), corpus.size());

  // Each bit of the secret and of the input flips about half of the digest.
  const Digest base = digest(secret, "some key of a client");
  for (unsigned bit = 0; bit < 128; ++bit) {
    DigestSecret other = secret;
    (bit < 64 ? other.first : other.second) ^= std::uint64_t{1} << (bit % 64);
    const Digest changed = digest(other, "some key of a client");
    const int flipped =
        std::popcount(base.low ^ changed.low) + std::popcount(base.high ^ changed.high);
    EXPECT_GT(flipped, 32) << bit;
    EXPECT_LT(flipped, 96) << bit;
  }
}

}  // namespace
}  // namespace sluice::core
