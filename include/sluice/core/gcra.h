// GCRA: one limit, one word of state, one comparison per request.
//
// The generic cell rate algorithm, here the mathematics behind `gcra`, `token_bucket` and
// `leaky_bucket`; they differ in their default burst and in queueing. A request of cost c is
// admitted if the backlog and its own c intervals fit into the burst:
//
//     level = max(0, TAT - now)         admitted iff level + c * interval <= burst * interval
//
// Time base: monotonic. A step of the wall clock does nothing.
//
// Rounding. The interval is period / amount. Where that divides evenly a tick is 1 ns and every
// decision is exact. Otherwise a tick is 1/16 ns (1/256 ns for intervals below 16 ns) and the
// interval rounds up: never above the configured rate, at most 1/256 below it.
//
// Range. The half range is 292 years in the exact case, else 18 years, and 1.1 years for intervals
// below 16 ns: a state idle for longer has to be dropped before it is looked at again, which costs
// nothing, since an expired state equals no state.
//
// Most admitted in any window of one period, half open: burst + amount - 1.
#pragma once

#include <sluice/core/meter.h>
#include <sluice/core/step.h>

#include <cstdint>

namespace sluice::core {

struct GcraLimit {
  Meter meter;
  std::uint8_t fraction_bits = 0;  // a tick is 2^-fraction_bits ns

  // Requires what compile() proves: amount, burst in 1..1e9, amount <= period in ns, full drain
  // at most two years, max_delay at most a day.
  struct Numbers {
    std::uint32_t amount = 0;
    Nanos period{0};
    std::uint32_t burst = 0;
    Nanos max_delay{0};
    bool count_rejected = false;
  };
  [[nodiscard]] static GcraLimit from(Numbers numbers) noexcept;
};

using GcraState = MeterState;

[[nodiscard]] constexpr std::uint64_t gcra_ticks(const GcraLimit& limit, MonoTime now) noexcept {
  return static_cast<std::uint64_t>(now.time_since_epoch().count()) << limit.fraction_bits;
}

// The time that a number of ticks takes, rounded up.
[[nodiscard]] constexpr Nanos gcra_wait(const GcraLimit& limit, std::int64_t ticks) noexcept {
  const std::int64_t one_less = (std::int64_t{1} << limit.fraction_bits) - 1;
  return Nanos{(ticks + one_less) >> limit.fraction_bits};
}

// A key without usage. All zeros would not do: ticks wrap.
[[nodiscard]] constexpr GcraState gcra_idle(const GcraLimit& limit, MonoTime now) noexcept {
  return {.tat = gcra_ticks(limit, now)};
}

// From ticks to time. Field by field, into the caller's memory: copied as a whole, a decision takes
// longer than it took to make.
constexpr void gcra_describe(const GcraLimit& limit, const MeterStep& step,
                             Decision& decision) noexcept {
  decision.verdict = step.verdict;
  decision.limit = limit.meter.burst;
  decision.remaining = static_cast<std::uint64_t>(meter_remaining(limit.meter, step.level));
  decision.reset_after = gcra_wait(limit, step.level);
  if (step.verdict == Verdict::rejected) {
    decision.retry_after = gcra_wait(limit, step.wait);
  } else {
    decision.retry_after.reset();
  }
  decision.delay = gcra_wait(limit, step.delay);
}

[[nodiscard]] constexpr Step<GcraState> gcra_answer(const GcraLimit& limit,
                                                    const MeterStep& step) noexcept {
  Step<GcraState> answer{.state = step.state, .decision = {}, .receipt = step.receipt};
  gcra_describe(limit, step, answer.decision);
  return answer;
}

[[nodiscard]] constexpr Step<GcraState> gcra_step(const GcraLimit& limit, GcraState state,
                                                  MonoTime now, Cost cost) noexcept {
  return gcra_answer(limit, meter_step(limit.meter, state, gcra_ticks(limit, now), cost));
}
[[nodiscard]] Step<GcraState> gcra_charge(const GcraLimit& limit, GcraState state, MonoTime now,
                                          Cost cost) noexcept;
[[nodiscard]] GcraState gcra_refund(const GcraLimit& limit, GcraState state, MonoTime now,
                                    Receipt receipt, Cost amount) noexcept;

// The same key under an edited limit. Rounds the usage up and makes earlier receipts void.
[[nodiscard]] GcraState gcra_convert(const GcraLimit& from, const GcraLimit& to, GcraState state,
                                     MonoTime now, OnChange change) noexcept;

}  // namespace sluice::core
