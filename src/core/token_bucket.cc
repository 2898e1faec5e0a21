#include <sluice/core/token_bucket.h>
#include <sluice/int128.h>

namespace sluice::core {
namespace {

std::int64_t period_of(const IntervalLimit& limit, WallTime now) noexcept {
  return floor_div(now.time_since_epoch().count(), limit.period.count());
}

// The staircase: tokens that a bucket without a bottom would have received since the epoch.
std::uint64_t staircase(const IntervalLimit& limit, WallTime now) noexcept {
  return static_cast<std::uint64_t>(period_of(limit, now) * limit.amount);
}

// Until the period has ended in which the given number of tokens has arrived.
Nanos refill_wait(const IntervalLimit& limit, WallTime now, std::int64_t tokens) noexcept {
  if (tokens == 0) return Nanos{0};
  const std::int64_t periods = ceil_div(tokens, limit.amount);
  return limit.period * (period_of(limit, now) + periods) - now.time_since_epoch();
}

Step<IntervalState> answer(const IntervalLimit& limit, WallTime now,
                           const MeterStep& step) noexcept {
  Decision decision{
      .verdict = step.verdict,
      .limit = limit.meter.burst,
      .remaining = static_cast<std::uint64_t>(meter_remaining(limit.meter, step.level)),
      .reset_after = refill_wait(limit, now, step.level),
      .retry_after = std::nullopt,
  };
  if (step.verdict == Verdict::rejected) {
    decision.retry_after = refill_wait(limit, now, step.wait);
  }
  return {.state = step.state, .decision = decision, .receipt = step.receipt};
}

}  // namespace

IntervalLimit IntervalLimit::from(Numbers numbers) noexcept {
  const std::int64_t amount = numbers.amount;
  const std::int64_t clock_step = ceil_div(kClockStep.count(), numbers.period.count()) * amount;
  return {.meter = {.unit = 1,
                    .capacity = numbers.burst,
                    .full = numbers.burst,
                    .possible = numbers.burst + clock_step,
                    .burst = numbers.burst,
                    .count_rejected = numbers.count_rejected,
                    .inverse = inverse_of(1)},
          .amount = amount,
          .period = numbers.period};
}

Step<IntervalState> interval_step(const IntervalLimit& limit, IntervalState state, WallTime now,
                                  Cost cost) noexcept {
  return answer(limit, now, meter_step(limit.meter, state, staircase(limit, now), cost));
}

Step<IntervalState> interval_charge(const IntervalLimit& limit, IntervalState state, WallTime now,
                                    Cost cost) noexcept {
  return answer(limit, now, meter_charge(limit.meter, state, staircase(limit, now), cost));
}

IntervalState interval_refund(const IntervalLimit& limit, IntervalState state, WallTime now,
                              Receipt receipt, Cost amount) noexcept {
  return meter_refund(limit.meter, state, staircase(limit, now), receipt, amount);
}

IntervalState interval_convert(const IntervalLimit& from, const IntervalLimit& to,
                               IntervalState state, WallTime now, OnChange change) noexcept {
  const std::uint64_t now_tokens = staircase(to, now);
  if (change == OnChange::reset) return meter_restarted(state, now_tokens, 0);
  const std::int64_t level = meter_level(from.meter, state, staircase(from, now));
  const std::int64_t kept = meter_converted(from.meter, to.meter, level, change);
  return meter_restarted(state, now_tokens, kept);
}

}  // namespace sluice::core
