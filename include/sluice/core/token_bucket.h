// Token bucket: a request takes its cost in tokens from a bucket that holds `burst` of them.
//
// Continuous refill (the default) is GCRA: a token is an interval of drain time, see core/gcra.h.
//
// `refill: interval` adds `amount` tokens at once at the end of each period. Periods are aligned to
// the epoch of the wall clock. Seen as a meter, the level counts missing tokens and the clock is a
// staircase that rises by `amount` each period; the state is one word.
//
// Time base: wall. A step forward is taken for time that passed: it refills. A step back refills
// nothing until the clock is past where it was; after a step of more than a minute (and a full
// refill) the key goes on from the new time with an empty bucket.
//
// Most admitted in any window of one period: burst + min(burst, amount).
#pragma once

#include <sluice/core/meter.h>
#include <sluice/core/step.h>

#include <cstdint>

namespace sluice::core {

struct IntervalLimit {
  Meter meter;  // unit 1: ticks are tokens
  std::int64_t amount = 1;
  Nanos period{1};

  struct Numbers {
    std::uint32_t amount = 0;
    Nanos period{0};
    std::uint32_t burst = 0;
    bool count_rejected = false;
  };
  [[nodiscard]] static IntervalLimit from(Numbers numbers) noexcept;
};

// All zeros is an idle key for any instant since 1970: the staircase never wraps, because at most
// one token a nanosecond arrives.
using IntervalState = MeterState;

[[nodiscard]] Step<IntervalState> interval_step(const IntervalLimit& limit, IntervalState state,
                                                WallTime now, Cost cost) noexcept;
[[nodiscard]] Step<IntervalState> interval_charge(const IntervalLimit& limit, IntervalState state,
                                                  WallTime now, Cost cost) noexcept;
[[nodiscard]] IntervalState interval_refund(const IntervalLimit& limit, IntervalState state,
                                            WallTime now, Receipt receipt, Cost amount) noexcept;

// Both limits have the same period, or the state has to be carried over as a charge instead.
[[nodiscard]] IntervalState interval_convert(const IntervalLimit& from, const IntervalLimit& to,
                                             IntervalState state, WallTime now,
                                             OnChange change) noexcept;

}  // namespace sluice::core
