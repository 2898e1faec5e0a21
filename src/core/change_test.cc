// Limits that are edited while keys are in use.
#include "support/property.h"
#include "support/traffic.h"
#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>
#include <sluice/int128.h>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace sluice::core {
namespace {

using namespace std::chrono_literals;
using sluice::testing::all_subjects;
using sluice::testing::at;
using sluice::testing::Beat;
using sluice::testing::between;
using sluice::testing::check_property;
using sluice::testing::compiled;
using sluice::testing::later;
using sluice::testing::peek;
using sluice::testing::scale_of;
using sluice::testing::Subject;
using sluice::testing::traffic;

bool is_meter(const CompiledLimit& limit) {
  return std::holds_alternative<GcraLimit>(limit) || std::holds_alternative<IntervalLimit>(limit);
}

struct Edit {
  Cell cell;
  std::int64_t now = 0;
  std::uint64_t used = 0;  // under the old limit
  std::uint64_t old_capacity = 0;
  std::uint64_t new_capacity = 0;
  bool over_full = false;  // more may be used than the capacity shows
};

// A key with a random past under the old limit, before the edit.
Edit random_key(const Limit& old_limit, const CompiledLimit& from, const Limit& new_limit) {
  Edit edit;
  edit.now = *sluice::testing::starts(scale_of(old_limit).period);
  for (const Beat& beat : *traffic(scale_of(old_limit), 12)) {
    edit.now = later(edit.now, beat.gap);
    (void)edit.cell.decide(from, at(edit.now), beat.cost);
  }
  const Decision before = peek(edit.cell, from, edit.now);
  edit.used = before.limit - before.remaining;
  edit.old_capacity = before.limit;
  edit.new_capacity = capacity(new_limit);
  edit.over_full = before.remaining == 0 && (old_limit.max_delay.has_value() ||
                                             old_limit.algorithm == Algorithm::sliding_counter);
  return edit;
}

// What must be left of the new capacity when a number of units is used.
std::uint64_t left(const Edit& edit, std::uint64_t used) {
  return edit.new_capacity - std::min(edit.new_capacity, used);
}

std::uint64_t share(const Edit& edit) {
  return static_cast<std::uint64_t>(mul_div_ceil(static_cast<std::int64_t>(edit.used),
                                                 static_cast<std::int64_t>(edit.new_capacity),
                                                 static_cast<std::int64_t>(edit.old_capacity)));
}

// The key goes on under its new limit as any other would.
void expect_sane(Cell cell, const CompiledLimit& limit, std::int64_t now) {
  const Decision seen = peek(cell, limit, now);
  RC_ASSERT(seen.remaining <= seen.limit);
  RC_ASSERT(peek(cell, limit, now + seen.reset_after.count()).remaining == seen.limit);
  const auto cost = static_cast<Cost>(seen.limit);
  const Decision decision = cell.decide(limit, at(now), cost).decision;
  if (decision.retry_after) {
    const std::int64_t retry = decision.retry_after->count();
    Cell waited = cell;
    RC_ASSERT(waited.decide(limit, at(now + retry), cost).decision.allowed());
    RC_ASSERT(!cell.decide(limit, at(now + retry - 1), cost).decision.allowed());
  }
}

void expect_edit_keeps_what_was_used(const Limit& old_limit, const Limit& new_limit) {
  const CompiledLimit from = compiled(old_limit);
  const CompiledLimit to = compiled(new_limit);
  const Edit edit = random_key(old_limit, from, new_limit);
  const auto after = [&](OnChange change) {
    Cell cell = edit.cell;
    cell.convert(from, to, at(edit.now), change);
    expect_sane(cell, to, edit.now);
    return peek(cell, to, edit.now).remaining;
  };
  const std::uint64_t kept = after(OnChange::keep);
  RC_ASSERT(kept <= left(edit, edit.used));
  if (!edit.over_full) RC_ASSERT(kept == left(edit, edit.used));

  const bool in_flight = std::holds_alternative<ConcurrencyLimit>(from) &&
                         std::holds_alternative<ConcurrencyLimit>(to);
  if (in_flight) {  // requests in flight stay in flight, whatever the edit says
    RC_ASSERT(after(OnChange::proportional) == kept);
    RC_ASSERT(after(OnChange::reset) == kept);
    return;
  }
  const std::uint64_t proportional = after(OnChange::proportional);
  if (is_meter(from) && is_meter(to)) {
    // A fraction of a unit counts as a whole one before it is multiplied, or after.
    RC_ASSERT(proportional >= left(edit, share(edit)) || edit.over_full);
    if (edit.used > 0) RC_ASSERT(proportional < edit.new_capacity);
  } else if (std::holds_alternative<CounterLimit>(from) &&
             std::holds_alternative<CounterLimit>(to)) {
    // Each of the two counts rounds up.
    const std::uint64_t used = edit.new_capacity - proportional;
    RC_ASSERT(used <= share(edit) + 2);
    RC_ASSERT((used + 1) * edit.old_capacity > (edit.used - 1) * edit.new_capacity ||
              edit.used == 0);
  } else {
    RC_ASSERT(proportional == left(edit, share(edit)));
  }
  RC_ASSERT(after(OnChange::reset) == edit.new_capacity);
}

// The same kind of limit with other numbers: another amount, the same windows.
TEST(Change, EditedAmountKeepsWhatWasUsed) {
  for (const Subject& subject : all_subjects()) {
    SCOPED_TRACE(subject.name);
    check_property(100, [&] {
      Limit edited = subject.limit;
      edited.amount = *between(1, std::min(kAmountMax, 3 * subject.limit.amount));
      if (edited.burst) edited.burst = *between(1, 3 * *subject.limit.burst);
      RC_PRE(compile(edited).has_value());
      expect_edit_keeps_what_was_used(subject.limit, edited);
    });
  }
}

// Any limit into any other: what was used is charged anew.
TEST(Change, EditedAlgorithmOrPeriodKeepsWhatWasUsed) {
  const std::vector<Subject> subjects = all_subjects();
  check_property(4000, [&] {
    const Limit old_limit = subjects[*between(0, subjects.size() - 1)].limit;
    const Limit new_limit = subjects[*between(0, subjects.size() - 1)].limit;
    expect_edit_keeps_what_was_used(old_limit, new_limit);
  });
}

// The extremes of every algorithm into the extremes of every other; nothing overflows.
TEST(Change, ExtremeLimitsConvertIntoOneAnother) {
  const auto any_limit = [] {
    const auto algorithm =
        *rc::gen::elementOf(std::vector<Algorithm>(kAlgorithms.begin(), kAlgorithms.end()));
    if (algorithm == Algorithm::gcra) return *sluice::testing::interval_limits();
    return *sluice::testing::limits_of(algorithm);
  };
  check_property(6000, [&] { expect_edit_keeps_what_was_used(any_limit(), any_limit()); });
}

// Two edits in a row, there and back, hand nothing out.
TEST(Change, ThereAndBackGrantsNothing) {
  const std::vector<Subject> subjects = all_subjects();
  check_property(2000, [&] {
    const Limit limit = subjects[*between(0, subjects.size() - 1)].limit;
    Limit other = limit;
    other.amount = *between(limit.amount, std::min(kAmountMax, 3 * limit.amount));
    if (other.burst) other.burst = *other.burst + *between(0, 10);
    RC_PRE(compile(other).has_value());
    const CompiledLimit from = compiled(limit);
    const CompiledLimit to = compiled(other);
    Edit edit = random_key(limit, from, other);
    const std::uint64_t before = peek(edit.cell, from, edit.now).remaining;
    edit.cell.convert(from, to, at(edit.now), OnChange::keep);
    edit.cell.convert(to, from, at(edit.now), OnChange::keep);
    RC_ASSERT(peek(edit.cell, from, edit.now).remaining <= before);
  });
}

// Half of ten is in sight: five are used, under the lower limit, too.
TEST(Change, LoweredSlidingCounterKeepsTheWeightOfItsPreviousWindow) {
  const CompiledLimit from =
      compiled({.algorithm = Algorithm::sliding_counter, .amount = 10, .period = 10s});
  const CompiledLimit to =
      compiled({.algorithm = Algorithm::sliding_counter, .amount = 6, .period = 10s});
  Cell cell;
  const std::int64_t start = Nanos{100s}.count();
  ASSERT_TRUE(cell.decide(from, at(start), 10).decision.allowed());
  const std::int64_t now = start + Nanos{15s}.count();
  ASSERT_EQ(peek(cell, from, now).remaining, 5U);
  cell.convert(from, to, at(now), OnChange::keep);
  EXPECT_EQ(peek(cell, to, now).remaining, 1U);
}

// Counting limits of one amount, in a window that has just begun.
std::vector<Subject> counting_limits(std::uint64_t amount) {
  const auto limit = [&](Algorithm algorithm) {
    return Limit{.algorithm = algorithm, .amount = amount, .period = 8s};
  };
  Limit first_request = limit(Algorithm::fixed_window);
  first_request.align = Align::first_request;
  return {{.name = "fixed_window", .limit = limit(Algorithm::fixed_window)},
          {.name = "fixed_window_first_request", .limit = first_request},
          {.name = "sliding_log", .limit = limit(Algorithm::sliding_log)},
          {.name = "sliding_counter", .limit = limit(Algorithm::sliding_counter)},
          {.name = "sliding_buckets", .limit = limit(Algorithm::sliding_buckets)}};
}

constexpr std::int64_t kWindow = Nanos{80'000s}.count();

// A and B take five each of ten, which become five. B alone fills those, so the refund of A makes
// no room, whether both sit in one slice or entry or apart.
TEST(Change, RefundAfterALoweredLimitMakesNoRoomBesideWhatIsStillUsed) {
  const std::vector<Subject> tens = counting_limits(10);
  const std::vector<Subject> fives = counting_limits(5);
  for (std::size_t i = 0; i < tens.size(); ++i) {
    for (const std::int64_t apart : {std::int64_t{0}, Nanos{2s}.count()}) {
      SCOPED_TRACE(tens[i].name + " apart " + std::to_string(apart));
      const CompiledLimit from = compiled(tens[i].limit);
      const CompiledLimit to = compiled(fives[i].limit);
      Cell cell;
      const Receipt a = cell.decide(from, at(kWindow), 5).receipt;
      ASSERT_TRUE(cell.decide(from, at(kWindow + apart), 5).decision.allowed());
      const std::int64_t now = kWindow + Nanos{3s}.count();
      cell.convert(from, to, at(now), OnChange::keep);
      ASSERT_EQ(peek(cell, to, now).remaining, 0U);
      cell.refund(to, at(now), a, 5);
      EXPECT_EQ(peek(cell, to, now).remaining, 0U);
      EXPECT_FALSE(cell.decide(to, at(now), 1).decision.allowed());
    }
  }
}

// Ten of ten are used. Lowering the limit and raising it again within the window forgives nothing;
// only the log, whose ring holds no more entries than the amount, forgets its oldest.
TEST(Change, LoweredAndRaisedAgainKeepsTheUsage) {
  const std::vector<Subject> tens = counting_limits(10);
  const std::vector<Subject> fives = counting_limits(5);
  for (std::size_t i = 0; i < tens.size(); ++i) {
    if (tens[i].limit.algorithm == Algorithm::sliding_log) continue;
    SCOPED_TRACE(tens[i].name);
    const CompiledLimit from = compiled(tens[i].limit);
    const CompiledLimit to = compiled(fives[i].limit);
    Cell cell;
    ASSERT_TRUE(cell.decide(from, at(kWindow), 10).decision.allowed());
    const Decision before = peek(cell, from, kWindow);
    cell.convert(from, to, at(kWindow), OnChange::keep);
    EXPECT_EQ(peek(cell, to, kWindow).remaining, 0U);
    cell.convert(to, from, at(kWindow), OnChange::keep);
    EXPECT_EQ(peek(cell, from, kWindow), before);
  }
}

// A hundred are used and become ten allowed. Whether that was said right before the window turned
// or right after, the same requests pass from then on.
TEST(Change, LoweredSlidingCounterDoesNotDependOnTheTurnOfTheWindow) {
  const Limit hundred{.algorithm = Algorithm::sliding_counter, .amount = 100, .period = 10s};
  Limit ten = hundred;
  ten.amount = 10;
  const CompiledLimit from = compiled(hundred);
  const CompiledLimit to = compiled(ten);
  const std::int64_t turn = Nanos{80'000s}.count();
  for (const Cost used : {Cost{100}, Cost{55}, Cost{11}, Cost{10}, Cost{3}}) {
    Cell before;
    ASSERT_TRUE(before.decide(from, at(turn - Nanos{4s}.count()), used).decision.allowed());
    Cell after = before;
    before.convert(from, to, at(turn - 1), OnChange::keep);
    after.convert(from, to, at(turn), OnChange::keep);
    for (std::int64_t offset = 0; offset <= Nanos{25s}.count(); offset += Nanos{125ms}.count()) {
      SCOPED_TRACE(std::to_string(used) + " used, " + std::to_string(offset) + " ns later");
      for (const Cost cost : {Cost{0}, Cost{10}, Cost{1}}) {
        const Decision late = after.decide(to, at(turn + offset), cost).decision;
        ASSERT_EQ(before.decide(to, at(turn + offset), cost).decision, late);
      }
    }
  }
}

CompiledLimit leases(std::uint64_t amount, Nanos slot_ttl) {
  Limit limit{.algorithm = Algorithm::concurrency, .amount = amount};
  limit.slot_ttl = slot_ttl;
  return compiled(limit);
}

// An edit of the TTL renumbers generations; whoever is in flight stays so and can renew and leave.
TEST(Change, LeasesSurviveAnEditOfTheirTtl) {
  const CompiledLimit minute = leases(2, 60s);
  const CompiledLimit half = leases(2, 30s);
  for (const bool shorter : {true, false}) {
    SCOPED_TRACE(shorter ? "60 s to 30 s" : "30 s to 60 s");
    const CompiledLimit& from = shorter ? minute : half;
    const CompiledLimit& to = shorter ? half : minute;
    std::int64_t now = Nanos{100h}.count();
    Cell cell;
    Receipt first = cell.decide(from, at(now), 1).receipt;
    now += Nanos{25s}.count();
    ASSERT_TRUE(cell.decide(from, at(now), 1).decision.allowed());
    cell.convert(from, to, at(now), OnChange::keep);
    EXPECT_FALSE(cell.decide(to, at(now), 1).decision.allowed());
    for (int i = 0; i < 20; ++i) {  // renewed twice a TTL, the first lives on
      now += Nanos{15s}.count();
      first = cell.renew(to, at(now), first);
      ASSERT_EQ(first.cost, 1U) << i;
      ASSERT_LE(peek(cell, to, now).remaining, 1U) << i;
      if (i == 0) {
        ASSERT_FALSE(cell.decide(to, at(now), 1).decision.allowed());
      }
    }
    EXPECT_EQ(peek(cell, to, now).remaining, 1U);  // the second was not renewed
    ASSERT_TRUE(cell.decide(to, at(now), 1).decision.allowed());
    EXPECT_FALSE(cell.decide(to, at(now), 1).decision.allowed());
    cell.refund(to, at(now), first, 1);
    EXPECT_EQ(peek(cell, to, now).remaining, 1U);
  }
}

TEST(Change, LeaseOfBeforeAnEditOfTheTtlIsGivenBack) {
  const CompiledLimit from = leases(2, 60s);
  const CompiledLimit to = leases(2, 30s);
  const std::int64_t now = Nanos{100h}.count();
  Cell cell;
  const Receipt held = cell.decide(from, at(now), 1).receipt;
  ASSERT_TRUE(cell.decide(from, at(now), 1).decision.allowed());
  cell.convert(from, to, at(now + 1), OnChange::keep);
  ASSERT_EQ(peek(cell, to, now + 1).remaining, 0U);
  cell.refund(to, at(now + 1), held, 1);
  EXPECT_EQ(peek(cell, to, now + 1).remaining, 1U);
}

// Ten in flight stay ten while only five are allowed.
TEST(Change, LoweredAndRaisedConcurrencyForgetsNobody) {
  const CompiledLimit ten_of_a_minute = leases(10, 60s);
  const CompiledLimit five = leases(5, 30s);
  const CompiledLimit ten = leases(10, 30s);
  const std::int64_t now = Nanos{100h}.count();
  Cell cell;
  std::vector<Receipt> held;
  for (int i = 0; i < 10; ++i) held.push_back(cell.decide(ten_of_a_minute, at(now), 1).receipt);
  cell.convert(ten_of_a_minute, five, at(now), OnChange::keep);
  EXPECT_EQ(peek(cell, five, now).remaining, 0U);
  cell.convert(five, ten, at(now), OnChange::keep);
  EXPECT_EQ(peek(cell, ten, now).remaining, 0U);
  for (std::size_t i = 0; i < held.size(); ++i) {
    cell.refund(ten, at(now), held[i], 1);
    EXPECT_EQ(peek(cell, ten, now).remaining, i + 1);
  }
}

// A lowered limit binds at once: resilience4j ignored it until the period was over.
TEST(Change, LoweredLimitBindsAtOnce) {
  const CompiledLimit from =
      compiled({.algorithm = Algorithm::fixed_window, .amount = 100, .period = 1h});
  const CompiledLimit to =
      compiled({.algorithm = Algorithm::fixed_window, .amount = 10, .period = 1h});
  Cell cell;
  const std::int64_t now = Nanos{100h}.count();
  ASSERT_TRUE(cell.decide(from, at(now), 50).decision.allowed());
  cell.convert(from, to, at(now), OnChange::keep);
  EXPECT_EQ(cell.decide(to, at(now), 1).decision.verdict, Verdict::rejected);
}

// A receipt from before the edit must not be read in units of another size, nor name a window or a
// lease of the new limit by accident: it gives nothing back.
TEST(Change, ReceiptsFromBeforeAnEditOfPeriodOrRateAreVoid) {
  struct Edited {
    Limit from;
    Limit to;
  };
  const auto rate = [](Algorithm algorithm, std::uint64_t amount, Nanos period) {
    return Limit{.algorithm = algorithm, .amount = amount, .period = period};
  };
  Limit interval_from = rate(Algorithm::token_bucket, 3, 1s);
  Limit interval_to = rate(Algorithm::token_bucket, 5, 1s);
  interval_from.refill = interval_to.refill = Refill::interval;
  Limit leases_from{.algorithm = Algorithm::concurrency, .amount = 3};
  Limit leases_to{.algorithm = Algorithm::concurrency, .amount = 5};
  leases_to.slot_ttl = 30s;
  const Edited edits[] = {
      {rate(Algorithm::token_bucket, 3, 1s), rate(Algorithm::token_bucket, 5, 1s)},
      {rate(Algorithm::gcra, 3, 1s), rate(Algorithm::gcra, 7, 1s)},
      {interval_from, interval_to},
      {rate(Algorithm::fixed_window, 3, 1s), rate(Algorithm::fixed_window, 5, 2s)},
      {rate(Algorithm::sliding_counter, 3, 1s), rate(Algorithm::sliding_log, 5, 2s)},
      {leases_from, leases_to},
  };
  for (const Edited& edit : edits) {
    SCOPED_TRACE(std::string{to_string(edit.from.algorithm)} + " to " +
                 std::string{to_string(edit.to.algorithm)});
    const CompiledLimit from = compiled(edit.from);
    const CompiledLimit to = compiled(edit.to);
    Cell cell;
    const core::Receipt old = cell.decide(from, at(10'000'000'000), 3).receipt;
    cell.convert(from, to, at(10'000'000'000), OnChange::keep);
    // Long after the old charge has drained, the new limit is used up.
    const std::int64_t later = 200'000'000'000;
    ASSERT_TRUE(
        cell.decide(to, at(later), static_cast<core::Cost>(edit.to.amount)).decision.allowed());
    cell.refund(to, at(later), old, 3);
    EXPECT_EQ(peek(cell, to, later).remaining, 0U);
  }
}

// A lease that had lapsed before the edit, or was taken before the key had other limits, frees
// nobody's slot.
TEST(Change, LapsedAndForeignReceiptsReleaseNoLease) {
  const auto leases = [](Nanos slot_ttl) {
    Limit limit{.algorithm = Algorithm::concurrency, .amount = 1};
    limit.slot_ttl = slot_ttl;
    return compiled(limit);
  };
  const CompiledLimit minute = leases(60s);
  const CompiledLimit half = leases(30s);
  const std::int64_t start = 1'000'000'000'000;
  const std::int64_t later = start + 200'000'000'000;
  {
    Cell cell;
    const Receipt dead = cell.decide(minute, at(start), 1).receipt;
    ASSERT_TRUE(cell.decide(minute, at(later), 1).decision.allowed());
    cell.convert(minute, half, at(later), OnChange::keep);
    cell.refund(half, at(later), dead, 1);
    EXPECT_EQ(peek(cell, half, later).remaining, 0U);
  }
  {
    Cell cell;
    const Receipt dead = cell.decide(minute, at(start), 1).receipt;
    cell.convert(minute, half, at(start), OnChange::keep);
    ASSERT_TRUE(cell.decide(half, at(later), 1).decision.allowed());
    cell.convert(half, half, at(later), OnChange::keep);
    cell.refund(half, at(later), dead, 1);
    EXPECT_EQ(peek(cell, half, later).remaining, 0U);
  }
  {
    const CompiledLimit bucket =
        compiled({.algorithm = Algorithm::token_bucket, .amount = 5, .period = 1s});
    Cell cell;
    const Receipt foreign = cell.decide(bucket, at(1'000'000'000), 1).receipt;
    cell.convert(bucket, minute, at(5'000'000'000), OnChange::keep);
    ASSERT_TRUE(cell.decide(minute, at(5'000'000'000), 1).decision.allowed());
    cell.refund(minute, at(5'000'000'000), foreign, 1);
    EXPECT_EQ(peek(cell, minute, 5'000'000'000).remaining, 0U);
  }
}

// Two edits of the TTL in a row: the holder still has its slot, and can still give it back.
TEST(Change, LeasesFollowSeveralEditsOfTheirTtl) {
  const auto leases = [](Nanos slot_ttl) {
    Limit limit{.algorithm = Algorithm::concurrency, .amount = 1};
    limit.slot_ttl = slot_ttl;
    return compiled(limit);
  };
  const CompiledLimit editions[] = {leases(60s), leases(30s), leases(45s)};
  const std::int64_t start = 1'000'000'000'000;
  Cell cell;
  const Receipt lease = cell.decide(editions[0], at(start), 1).receipt;
  cell.convert(editions[0], editions[1], at(start + 1), OnChange::keep);
  cell.convert(editions[1], editions[2], at(start + 2), OnChange::reset);
  EXPECT_EQ(peek(cell, editions[2], start + 3).remaining, 0U);
  cell.refund(editions[2], at(start + 3), lease, 1);
  EXPECT_EQ(peek(cell, editions[2], start + 3).remaining, 1U);
}

}  // namespace
}  // namespace sluice::core
