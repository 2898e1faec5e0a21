// Every algorithm against its reference model, over random limits and histories.
#include "support/models.h"

#include "support/property.h"
#include "support/traffic.h"
#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace sluice::core {
namespace {

using namespace std::chrono_literals;
using sluice::testing::at;
using sluice::testing::Beat;
using sluice::testing::BucketModel;
using sluice::testing::ceil_of;
using sluice::testing::check_property;
using sluice::testing::compiled;
using sluice::testing::later;
using sluice::testing::LeaseModel;
using sluice::testing::Model;
using sluice::testing::model_of;
using sluice::testing::Rational;
using sluice::testing::Scale;
using sluice::testing::scale_of;
using sluice::testing::starts;
using sluice::testing::traffic;

constexpr std::int64_t kTwoYears = 2 * sluice::testing::kYear;

// Plays the same history to a cell and to a model and wants equal answers, field by field.
void expect_same_answers(const Limit& limit, Model& model) {
  const Scale scale = scale_of(limit);
  const CompiledLimit numbers = compiled(limit);
  std::int64_t now = *starts(scale.period);
  Cell cell;
  for (const Beat& beat : *traffic(scale)) {
    now = later(now, beat.gap);
    const Decision ours = cell.decide(numbers, at(now), beat.cost).decision;
    RC_ASSERT(ours == model.decide(now, beat.cost));
  }
}

void expect_same_answers(const Limit& limit) { expect_same_answers(limit, *model_of(limit)); }

// The interval a bucket really uses, as an exact fraction of nanoseconds.
Rational enforced_interval(const GcraLimit& limit) {
  return Rational{limit.meter.unit} / (std::int64_t{1} << limit.fraction_bits);
}

BucketModel enforced_model(const Limit& limit) {
  const GcraLimit numbers = std::get<GcraLimit>(compiled(limit));
  return BucketModel{{.interval = enforced_interval(numbers),
                      .burst = capacity(limit),
                      .max_delay = limit.max_delay.value_or(Nanos{0}).count(),
                      .count_rejected = limit.count_rejected}};
}

// A bucket whose interval is a whole number of nanoseconds is exact in every field.
TEST(Models, EvenBucketsAnswerLikeExactFractionsOfTokens) {
  check_property(4000, [] {
    Limit limit = *sluice::testing::bucket_limits();
    limit.period -= limit.period % static_cast<std::int64_t>(limit.amount);
    RC_PRE(compile(limit).has_value());
    RC_TAG(std::string{to_string(limit.algorithm)});
    expect_same_answers(limit);
  });
}

// Any other bucket is exact for its rounded-up interval.
TEST(Models, UnevenBucketsAnswerLikeTheModelAtTheRoundedInterval) {
  check_property(4000, [] {
    const Limit limit = *sluice::testing::bucket_limits();
    BucketModel model = enforced_model(limit);
    expect_same_answers(limit, model);
  });
}

// The rounding slows a bucket down by at most half a per cent, and never speeds it up.
TEST(Models, RoundedIntervalIsAtMostHalfAPercentTooLong) {
  check_property(5000, [] {
    const Limit limit = *sluice::testing::bucket_limits();
    const Rational wanted = Rational{limit.period.count()} / limit.amount;
    const Rational used = enforced_interval(std::get<GcraLimit>(compiled(limit)));
    RC_ASSERT(used >= wanted);
    RC_ASSERT(used * 1000 <= wanted * 1005);
    if (limit.period.count() % static_cast<std::int64_t>(limit.amount) == 0) {
      RC_ASSERT(used == wanted);
    }
  });
}

// Whatever a bucket admits, the bucket with the exact fraction would have admitted, too.
TEST(Models, NoBucketEverAdmitsWhatTheExactRateWouldNot) {
  check_property(3000, [] {
    const Limit limit = *sluice::testing::bucket_limits();
    const CompiledLimit numbers = compiled(limit);
    BucketModel exact{{.interval = Rational{limit.period.count()} / limit.amount,
                       .burst = capacity(limit),
                       .max_delay = limit.max_delay.value_or(Nanos{0}).count(),
                       .count_rejected = false}};
    Cell cell;
    std::int64_t now = *starts(limit.period.count());
    for (const Beat& beat : *traffic(scale_of(limit))) {
      now = later(now, beat.gap);
      const Decision ours = cell.decide(numbers, at(now), beat.cost).decision;
      if (ours.allowed()) RC_ASSERT(exact.take(now, beat.cost));
    }
  });
}

// A client that retries exactly when told gets at least 99.5 % of the configured rate.
TEST(Models, SaturatingClientGetsItsRate) {
  check_property(3000, [] {
    Limit limit = *sluice::testing::bucket_limits();
    limit.max_delay.reset();
    limit.count_rejected = false;
    const CompiledLimit numbers = compiled(limit);
    const std::int64_t start = std::min(
        *starts(limit.period.count()), sluice::testing::kLastInstant - 52 * sluice::testing::kYear);
    const auto cost = static_cast<Cost>(*sluice::testing::magnitude(1, capacity(limit)));
    Cell cell;
    RC_ASSERT(
        cell.charge(numbers, at(start), static_cast<Cost>(capacity(limit))).decision.remaining ==
        0U);
    std::int64_t now = start;
    // As many as fit into the years that nanoseconds can name.
    const Rational each = Rational{limit.period.count()} / limit.amount * cost;
    const auto requests =
        ceil_of(std::min(Rational{200}, Rational{Rational{50 * sluice::testing::kYear} / each}))
            .get_ui();
    for (std::uint64_t admitted = 0; admitted < requests;) {
      const Decision decision = cell.decide(numbers, at(now), cost).decision;
      if (decision.allowed()) {
        ++admitted;
      } else {
        RC_ASSERT(decision.retry_after.value() > 0ns);
        now += decision.retry_after->count();
      }
    }
    // Waits are whole nanoseconds. A client that lets the backlog run dry loses the part of the
    // last one; any other is credited for it with its next request.
    const Rational exact = each * requests;
    const Rational dry = Rational{ceil_of(each) + (cost > 1 ? 1 : 0)} * requests;
    const Rational fair = cost < capacity(limit) ? exact : dry;
    RC_ASSERT(Rational{now - start} * 995 <= fair * 1000 + 1000);
    RC_ASSERT(Rational{now - start} >= exact);
  });
}

TEST(Models, IntervalBucketsAnswerLikeCountedTokens) {
  check_property(4000, [] { expect_same_answers(*sluice::testing::interval_limits()); });
}

TEST(Models, EpochWindowsAnswerLikeAMapOfWindows) {
  check_property(4000,
                 [] { expect_same_answers(*sluice::testing::limits_of(Algorithm::fixed_window)); });
}

TEST(Models, FirstRequestWindowsAnswerLikeAMapOfWindows) {
  check_property(4000, [] {
    Limit limit = *sluice::testing::limits_of(Algorithm::fixed_window);
    limit.align = Align::first_request;
    expect_same_answers(limit);
  });
}

TEST(Models, SlidingLogAnswersLikeAListOfEverything) {
  check_property(4000,
                 [] { expect_same_answers(*sluice::testing::limits_of(Algorithm::sliding_log)); });
}

TEST(Models, SlidingCounterAnswersLikeExactFractions) {
  check_property(
      1000, [] { expect_same_answers(*sluice::testing::limits_of(Algorithm::sliding_counter)); });
}

TEST(Models, SlidingBucketsAnswerLikeAMapOfSlices) {
  check_property(
      4000, [] { expect_same_answers(*sluice::testing::limits_of(Algorithm::sliding_buckets)); });
}

TEST(Models, ConcurrencyAnswersLikeAListOfLeases) {
  check_property(4000,
                 [] { expect_same_answers(*sluice::testing::limits_of(Algorithm::concurrency)); });
}

// Leases that are given back, renewed, or forgotten: two counters know as much as a list.
TEST(Models, TwoCountersOfLeasesKnowAsMuchAsAListOfLeases) {
  check_property(4000, [] {
    const Limit limit = *sluice::testing::limits_of(Algorithm::concurrency);
    const Scale scale = scale_of(limit);
    const ConcurrencyLimit numbers = std::get<ConcurrencyLimit>(compiled(limit));
    LeaseModel model{{.amount = limit.amount, .slot_ttl = limit.slot_ttl->count()}};
    ConcurrencyState state;
    std::vector<Receipt> leases;
    std::int64_t now = *starts(scale.period);
    for (const Beat& beat : *traffic(scale)) {
      now = later(now, beat.gap);
      const MonoTime mono{Nanos{now}};
      const std::uint64_t action = leases.empty() ? 0 : *sluice::testing::between(0, 3);
      const std::size_t chosen =
          leases.empty() ? 0 : *sluice::testing::between(0, leases.size() - 1);
      if (action == 1) {
        state = concurrency_release(numbers, state, mono, leases[chosen], leases[chosen].cost);
        leases[chosen].cost = 0;  // given back once
        model.release(chosen);
      } else if (action == 2) {
        const Step<ConcurrencyState> renewed =
            concurrency_renew(numbers, state, mono, leases[chosen]);
        RC_ASSERT((renewed.receipt.cost > 0) == model.renew(now, chosen));
        state = renewed.state;
        leases[chosen] = renewed.receipt;
      } else {
        const Step<ConcurrencyState> taken = concurrency_step(numbers, state, mono, beat.cost);
        if (taken.receipt.cost > 0) leases.push_back(taken.receipt);
        state = taken.state;
        RC_ASSERT(taken.decision == model.decide(now, beat.cost));
      }
      RC_ASSERT(concurrency_step(numbers, state, mono, 0).decision == model.decide(now, 0));
    }
  });
}

// The ticks wrap around 2^64 without anybody noticing, as long as a state is looked at in time.
TEST(Models, BucketsDoNotNoticeThatTheirTicksWrap) {
  check_property(1000, [] {
    Limit limit = *sluice::testing::bucket_limits();
    const GcraLimit numbers = std::get<GcraLimit>(compiled(limit));
    Scale scale = scale_of(limit);
    scale.longest_gap = kTwoYears >> numbers.fraction_bits;
    BucketModel model = enforced_model(limit);
    // Where the ticks, and where their sign, turn over.
    const std::uint64_t wrap = (std::uint64_t{1} << 63U) >> numbers.fraction_bits;
    const bool sign = numbers.fraction_bits == 0 || *rc::gen::arbitrary<bool>();
    const auto turn = static_cast<std::int64_t>(sign ? wrap - 1 : 2 * wrap - 1);
    std::vector<Beat> beats = *traffic(scale);
    std::int64_t span = 0;
    for (const Beat& beat : beats) span += beat.gap;
    std::int64_t now = turn - span / 2;
    if (numbers.fraction_bits == 0) now = turn - span;  // nothing can be named beyond
    RC_PRE(now > 0);
    GcraState state = gcra_idle(numbers, MonoTime{Nanos{now}});
    for (const Beat& beat : beats) {
      now += beat.gap;
      const Step<GcraState> step = gcra_step(numbers, state, MonoTime{Nanos{now}}, beat.cost);
      state = step.state;
      RC_ASSERT(step.decision == model.decide(now, beat.cost));
    }
  });
}

}  // namespace
}  // namespace sluice::core
