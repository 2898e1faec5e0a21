// The rules that hold for every algorithm and variant alike.
#include "support/property.h"
#include "support/raw_key.h"
#include "support/traffic.h"
#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>
#include <sluice/int128.h>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
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
using sluice::testing::kYear;
using sluice::testing::magnitude;
using sluice::testing::peek;
using sluice::testing::Scale;
using sluice::testing::scale_of;
using sluice::testing::Subject;
using sluice::testing::traffic;
using sluice::testing::with_raw_key;

constexpr int kCases = 150;

// How far a clock is set back, more than the range of any state's wrapping ticks.
constexpr std::uint64_t kFarthestBack = 36 * std::uint64_t{kYear};

class Uniform : public ::testing::TestWithParam<Subject> {
 protected:
  [[nodiscard]] const Limit& limit() const { return GetParam().limit; }
  [[nodiscard]] const CompiledLimit& numbers() const { return numbers_; }
  [[nodiscard]] Scale scale() const { return scale_of(limit()); }
  [[nodiscard]] bool queues() const { return limit().max_delay.has_value(); }
  [[nodiscard]] bool is_concurrency() const { return limit().algorithm == Algorithm::concurrency; }

  // The longest time anything can stay used.
  [[nodiscard]] Nanos full_span() const { return std::visit(Span{}, numbers_); }

  // A cell with a past, and the time it is now. Early enough to step back, late enough to have a
  // past.
  struct Past {
    Cell cell;
    std::int64_t now = 0;
  };
  [[nodiscard]] Past past() const {
    Past past;
    past.now =
        static_cast<std::int64_t>(*between(std::uint64_t{40 * kYear}, std::uint64_t{80 * kYear}));
    for (const Beat& beat : *traffic(scale(), 12)) {
      past.now += beat.gap;
      (void)past.cell.decide(numbers_, at(past.now), beat.cost);
    }
    return past;
  }

  // Takes one at a time until no more pass at once; the receipts of all.
  std::vector<Receipt> exhaust(Cell& cell, std::int64_t now) const {
    std::vector<Receipt> receipts;
    while (true) {
      const Outcome outcome = cell.decide(numbers_, at(now), 1);
      if (!outcome.decision.allowed()) return receipts;
      receipts.push_back(outcome.receipt);
    }
  }

 private:
  struct Span {
    Nanos operator()(const GcraLimit& of) const { return gcra_wait(of, of.meter.full); }
    Nanos operator()(const IntervalLimit& of) const {
      return of.period * ceil_div<std::int64_t>(of.meter.burst, of.amount);
    }
    Nanos operator()(const WindowLimit& of) const {
      return of.calendar ? 31 * 24h + 1h : of.period;
    }
    Nanos operator()(const FirstRequestLimit& of) const { return of.period; }
    Nanos operator()(const LogLimit& of) const { return of.period; }
    Nanos operator()(const CounterLimit& of) const { return 2 * of.period; }
    Nanos operator()(const BucketsLimit& of) const { return of.width * (of.slices + 1); }
    Nanos operator()(const ConcurrencyLimit& of) const { return 2 * of.slot_ttl; }
  };

  CompiledLimit numbers_ = compiled(GetParam().limit);
};

INSTANTIATE_TEST_SUITE_P(, Uniform, ::testing::ValuesIn(all_subjects()),
                         [](const auto& test) { return test.param.name; });

// Grants round down and waits round up, to the nanosecond.
TEST_P(Uniform, RetryAfterIsTheShortestWaitThatAdmits) {
  check_property(kCases, [this] {
    Past past = this->past();
    for (const Beat& beat : *traffic(scale(), 12)) {
      past.now += beat.gap;
      const Decision decision = past.cell.decide(numbers(), at(past.now), beat.cost).decision;
      if (decision.verdict != Verdict::rejected || is_concurrency()) {
        RC_ASSERT(!decision.retry_after);
        continue;
      }
      const std::int64_t retry = decision.retry_after->count();
      RC_ASSERT(retry > 0);
      Cell waited = past.cell;
      RC_ASSERT(waited.decide(numbers(), at(past.now + retry), beat.cost).decision.allowed());
      Cell hasty = past.cell;
      RC_ASSERT(hasty.decide(numbers(), at(past.now + retry - 1), beat.cost).decision.verdict ==
                Verdict::rejected);
    }
  });
}

// What a client is told it has left is what it gets, at once and without delay, and no more.
TEST_P(Uniform, RemainingRequestsAreAdmittedAndTheNextIsNot) {
  check_property(kCases, [this] {
    Past past = this->past();
    const std::uint64_t remaining = peek(past.cell, numbers(), past.now).remaining;
    RC_ASSERT(remaining <= capacity(limit()));
    for (std::uint64_t i = 0; i < remaining; ++i) {
      const Decision decision = past.cell.decide(numbers(), at(past.now), 1).decision;
      RC_ASSERT(decision.allowed());
      RC_ASSERT(decision.delay == 0ns);
      RC_ASSERT(decision.remaining == remaining - i - 1);
    }
    const Decision next = past.cell.decide(numbers(), at(past.now), 1).decision;
    RC_ASSERT(!next.allowed() || (queues() && next.delay > 0ns));
    RC_ASSERT(next.remaining == 0U);
  });
}

// The same in one request: exactly the remaining cost passes, one more does not.
TEST_P(Uniform, OneRequestMayTakeAllThatRemains) {
  check_property(kCases, [this] {
    const Past past = this->past();
    const auto remaining = static_cast<Cost>(peek(past.cell, numbers(), past.now).remaining);
    Cell all = past.cell;
    RC_ASSERT(all.decide(numbers(), at(past.now), remaining).decision.allowed());
    Cell more = past.cell;
    const Decision decision = more.decide(numbers(), at(past.now), remaining + 1).decision;
    RC_ASSERT(!decision.allowed() || (queues() && decision.delay > 0ns));
  });
}

TEST_P(Uniform, ResetAfterIsTheLeastTimeUntilEverythingIsBack) {
  check_property(kCases, [this] {
    const Past past = this->past();
    const Decision decision = peek(past.cell, numbers(), past.now);
    RC_ASSERT(decision.limit == capacity(limit()));
    const std::int64_t reset = decision.reset_after.count();
    RC_ASSERT(reset >= 0);
    RC_ASSERT(Nanos{reset} <= full_span());
    RC_ASSERT(peek(past.cell, numbers(), past.now + reset).remaining == decision.limit);
    if (reset > 0) {
      RC_ASSERT(peek(past.cell, numbers(), past.now + reset - 1).remaining < decision.limit);
    }
    RC_ASSERT((reset == 0) == (decision.remaining == decision.limit));
  });
}

// A peek, a refusal and an impossible cost leave the state as it was, to the bit.
TEST_P(Uniform, OnlyAdmissionsWrite) {
  check_property(kCases, [this] {
    Scale near = scale();
    near.longest_gap = kYear / 50;  // raw states are never dropped, so their ticks must not wrap
    std::int64_t now = static_cast<std::int64_t>(*between(0, std::uint64_t{40 * kYear}));
    with_raw_key(numbers(), at(now), [&](auto key) {
      for (const Beat& beat : *traffic(near, 20)) {
        now += beat.gap;
        auto before = key;
        const Outcome peeked = key.decide(at(now), 0);
        RC_ASSERT(peeked.decision.allowed());
        RC_ASSERT(peeked.receipt.cost == 0U);
        RC_ASSERT(key == before);
        const Outcome outcome = key.decide(at(now), beat.cost);
        if (!outcome.decision.allowed()) RC_ASSERT(outcome.receipt.cost == 0U);
        if (outcome.decision.verdict == Verdict::never) {
          RC_ASSERT(beat.cost > capacity(limit()));
          RC_ASSERT(key == before);
          RC_ASSERT(!outcome.decision.retry_after);
          Decision truth = peeked.decision;
          truth.verdict = Verdict::never;
          RC_ASSERT(outcome.decision == truth);
        }
        if (outcome.decision.verdict == Verdict::rejected && !limit().count_rejected) {
          RC_ASSERT(key == before);
          RC_ASSERT(outcome.decision.remaining == peeked.decision.remaining);
          RC_ASSERT(outcome.decision.reset_after == peeked.decision.reset_after);
        }
      }
    });
  });
}

// A refused request consumes what is left if, and only if, the limit says so.
TEST_P(Uniform, RefusedRequestsConsumeOnlyWhereDeniedOnesCount) {
  check_property(kCases, [this] {
    Past past = this->past();
    const Decision before = peek(past.cell, numbers(), past.now);
    const auto cost = static_cast<Cost>(*between(1, capacity(limit())));
    const Decision decision = past.cell.decide(numbers(), at(past.now), cost).decision;
    if (decision.verdict != Verdict::rejected) return;
    const Decision after = peek(past.cell, numbers(), past.now);
    if (limit().count_rejected) {
      RC_ASSERT(after.remaining == 0U);
      RC_ASSERT(after.reset_after <= full_span());
    } else {
      RC_ASSERT(after == before);
    }
    RC_ASSERT(decision.remaining == after.remaining);
    RC_ASSERT(decision.reset_after == after.reset_after);
  });
}

// A cost that is known only after the fact is charged as far as there is room, and never more.
TEST_P(Uniform, ForcedChargeSaturates) {
  check_property(kCases, [this] {
    Past past = this->past();
    const Decision before = peek(past.cell, numbers(), past.now);
    const auto cost = static_cast<Cost>(
        *rc::gen::oneOf(between(0, 2 * capacity(limit())), rc::gen::just<std::uint64_t>(~Cost{0})));
    const Outcome outcome = past.cell.charge(numbers(), at(past.now), cost);
    RC_ASSERT(outcome.decision.allowed());
    RC_ASSERT(outcome.decision.remaining ==
              before.remaining - std::min<std::uint64_t>(before.remaining, cost));
    RC_ASSERT(peek(past.cell, numbers(), past.now).remaining == outcome.decision.remaining);
    RC_ASSERT(outcome.decision.reset_after >= before.reset_after);
    RC_ASSERT(outcome.decision.reset_after <= full_span());
  });
}

// A refund right after its charge undoes it.
TEST_P(Uniform, RefundAtOnceRestoresWhatWasThere) {
  check_property(kCases, [this] {
    Past past = this->past();
    const Decision before = peek(past.cell, numbers(), past.now);
    const auto cost = static_cast<Cost>(*between(1, capacity(limit())));
    const Outcome outcome = past.cell.decide(numbers(), at(past.now), cost);
    if (!outcome.decision.allowed()) return;
    past.cell.refund(numbers(), at(past.now), outcome.receipt, cost);
    const Decision after = peek(past.cell, numbers(), past.now);
    RC_ASSERT(after.remaining == before.remaining);
  });
}

// A refund never takes back more than its charge put in, even if that was forced and saturated.
TEST_P(Uniform, RefundOfAForcedChargeGivesBackNoMoreThanItTook) {
  check_property(kCases, [this] {
    Past past = this->past();
    const Decision before = peek(past.cell, numbers(), past.now);
    const auto cost = static_cast<Cost>(*between(1, 2 * capacity(limit())));
    const Outcome outcome = past.cell.charge(numbers(), at(past.now), cost);
    past.cell.refund(numbers(), at(past.now), outcome.receipt, cost);
    const Decision after = peek(past.cell, numbers(), past.now);
    RC_ASSERT(after.remaining <= before.remaining);
    RC_ASSERT(after.reset_after >= before.reset_after);
  });
}

// Once a charge has drained, or its window is over, its refund must not touch what came later.
TEST_P(Uniform, RefundIsVoidOnceItsChargeHasExpired) {
  check_property(kCases, [this] {
    Past past = this->past();
    const std::vector<Receipt> first = exhaust(past.cell, past.now);
    past.now += peek(past.cell, numbers(), past.now).reset_after.count();
    (void)exhaust(past.cell, past.now);
    for (const Receipt& receipt : first)
      past.cell.refund(numbers(), at(past.now), receipt, receipt.cost);
    RC_ASSERT(peek(past.cell, numbers(), past.now).remaining == 0U);
    RC_ASSERT(!past.cell.decide(numbers(), at(past.now), 1).decision.allowed());
  });
}

// Time that goes back grants nothing: what a state allows, it allows no more of at any earlier
// time.
TEST_P(Uniform, TimeGoingBackGrantsNothing) {
  check_property(2 * kCases, [this] {
    const Past past = this->past();
    Scale near = scale();
    near.longest_gap = static_cast<std::int64_t>(kFarthestBack / 2);
    const auto steps =
        rc::gen::oneOf(sluice::testing::gaps(near),
                       rc::gen::element<std::int64_t>(1, Nanos{60s}.count(), Nanos{60s}.count() + 1,
                                                      full_span().count(), full_span().count() + 1),
                       rc::gen::cast<std::int64_t>(magnitude(0, kFarthestBack / 2)));
    const std::int64_t later = past.now - *steps / 2;
    const std::int64_t earlier = later - *steps;
    RC_ASSERT(peek(past.cell, numbers(), earlier).remaining <=
              peek(past.cell, numbers(), later).remaining);
    RC_ASSERT(peek(past.cell, numbers(), later).remaining <=
              peek(past.cell, numbers(), past.now).remaining);
    const auto cost = static_cast<Cost>(*between(1, capacity(limit())));
    Cell then = past.cell;
    Cell now = past.cell;
    const bool before = then.decide(numbers(), at(earlier), cost).decision.allowed();
    RC_ASSERT(!before || now.decide(numbers(), at(later), cost).decision.allowed());
  });
}

// retry_after counts from the clock that went back, and stays exact.
TEST_P(Uniform, RetryAfterIsExactAfterAStepBack) {
  check_property(2 * kCases, [this] {
    Past past = this->past();
    past.now -= static_cast<std::int64_t>(*magnitude(1, kFarthestBack / 2));
    const auto cost = static_cast<Cost>(*between(1, capacity(limit())));
    const Decision decision = past.cell.decide(numbers(), at(past.now), cost).decision;
    if (!decision.retry_after) return;
    const std::int64_t retry = decision.retry_after->count();
    Cell waited = past.cell;
    RC_ASSERT(waited.decide(numbers(), at(past.now + retry), cost).decision.allowed());
    RC_ASSERT(!past.cell.decide(numbers(), at(past.now + retry - 1), cost).decision.allowed());
  });
}

// Where nothing but peeks and impossible costs arrives, nothing moves a state to a clock that was
// set back: everything is back when the clock has caught up, and that is what they answer all the
// way.
TEST_P(Uniform, ResetAfterIsTrueAfterAStepBackIfNothingElseArrives) {
  check_property(2 * kCases, [this] {
    Past past = this->past();
    past.now -= static_cast<std::int64_t>(*magnitude(1, kFarthestBack));
    const auto impossible = static_cast<Cost>(capacity(limit()) + 1);
    const auto look = [&](std::int64_t now) {
      return past.cell.decide(numbers(), at(now), *rc::gen::element<Cost>(0, impossible)).decision;
    };
    const Decision first = look(past.now);
    RC_ASSERT(first.reset_after >= 0ns);
    RC_ASSERT((first.reset_after == 0ns) == (first.remaining == first.limit));
    const std::int64_t back = past.now + first.reset_after.count();
    while (past.now < back - 1) {
      past.now +=
          static_cast<std::int64_t>(*magnitude(1, static_cast<std::uint64_t>(back - 1 - past.now)));
      if (*between(0, 7) == 0) past.now = back - 1;
      const Decision seen = look(past.now);
      RC_ASSERT(seen.remaining < seen.limit);
      RC_ASSERT(past.now + seen.reset_after.count() == back);
    }
    RC_ASSERT(look(back).remaining == first.limit);
    RC_ASSERT(look(back).reset_after == 0ns);
  });
}

// Looking is free: a history with peeks and impossible costs in between, and, as long as the clock
// is not set back, refusals, goes on like the same history without them.
TEST_P(Uniform, PeeksInPlaceChangeNoLaterAnswer) {
  check_property(2 * kCases, [this] {
    std::int64_t now =
        static_cast<std::int64_t>(*between(std::uint64_t{40 * kYear}, std::uint64_t{80 * kYear}));
    const bool steps_back = *rc::gen::arbitrary<bool>();
    const std::uint64_t full = capacity(limit());
    Cell quiet;
    Cell watched;
    for (const Beat& beat : *traffic(scale(), 20)) {
      for (std::uint64_t looks = *between(0, 3); looks > 0; --looks) {
        now += *sluice::testing::gaps(scale());
        const auto cost =
            *rc::gen::element<Cost>(0, 1, static_cast<Cost>(full), static_cast<Cost>(full + 1));
        Cell copy = quiet;
        const Decision expected = copy.decide(numbers(), at(now), cost).decision;
        if (cost >= 1 && cost <= full &&
            (expected.allowed() || steps_back || limit().count_rejected)) {
          continue;
        }
        RC_ASSERT(watched.decide(numbers(), at(now), cost).decision == expected);
      }
      now += beat.gap;
      if (steps_back && *between(0, 5) == 0) {
        now -= static_cast<std::int64_t>(*magnitude(1, std::uint64_t{30 * kYear}));
        now = std::max<std::int64_t>(now, 0);
      }
      RC_ASSERT(watched.decide(numbers(), at(now), beat.cost).decision ==
                quiet.decide(numbers(), at(now), beat.cost).decision);
    }
  });
}

// A clock that was set back by a lot must not lock a key for as long: all is back after one span.
TEST_P(Uniform, KeyHealsWithinOneSpanAfterTheClockWasSetBack) {
  check_property(2 * kCases, [this] {
    Past past = this->past();
    (void)exhaust(past.cell, past.now);
    past.now -= (3 * full_span() + 60s).count();
    past.now -= static_cast<std::int64_t>(*magnitude(1, kFarthestBack / 2));
    const Decision refused = past.cell.decide(numbers(), at(past.now), 1).decision;
    RC_ASSERT(!refused.allowed());
    RC_ASSERT(refused.reset_after <= full_span());
    RC_ASSERT(peek(past.cell, numbers(), past.now + full_span().count()).remaining ==
              refused.limit);
  });
}

// Cost splitting: a request may come in pieces.
TEST_P(Uniform, TwoRequestsAtOnceAreLikeOneOfTheirSum) {
  check_property(kCases, [this] {
    const Past past = this->past();
    const std::uint64_t total = *between(0, capacity(limit()));
    const auto first = static_cast<Cost>(*between(0, total));
    Cell whole = past.cell;
    const Decision at_once =
        whole.decide(numbers(), at(past.now), static_cast<Cost>(total)).decision;
    if (!at_once.allowed()) return;
    Cell split = past.cell;
    RC_ASSERT(split.decide(numbers(), at(past.now), first).decision.allowed());
    RC_ASSERT(
        split.decide(numbers(), at(past.now), static_cast<Cost>(total) - first).decision.allowed());
    RC_ASSERT(peek(split, numbers(), past.now) == peek(whole, numbers(), past.now));
  });
}

}  // namespace
}  // namespace sluice::core
