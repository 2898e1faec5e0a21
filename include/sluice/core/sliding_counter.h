// Sliding counter: two windows, the previous one weighted by the part that has not expired.
//
//     admitted iff  prev * (W - e) + (cur + cost) * W <= amount * W      e = time into this window
//
// evaluated in 128 bits, without a division. It assumes that the previous window's requests were
// spread evenly; when they all came at its end, up to 2 * amount - 1 pass in one window W, no
// better than a fixed window. What it does prevent is the double burst at one instant.
//
// Time base: wall, windows aligned to the epoch. A step forward ages the counts. A step back is
// read as the start of the window that was current; after a step of more than a minute and a window
// both counts move, in full, to the window that the clock now shows.
#pragma once

#include <sluice/core/step.h>

#include <cstdint>

namespace sluice::core {

struct CounterLimit {
  Cost amount = 1;
  Nanos period{1};
  bool count_rejected = false;
};

// All zeros is an idle key.
struct CounterState {
  std::int64_t index = 0;  // number of the current window since the epoch
  Cost previous = 0;       // may exceed the amount for a window after that was lowered
  Cost current = 0;

  friend constexpr bool operator==(const CounterState&, const CounterState&) = default;
};

[[nodiscard]] Step<CounterState> sliding_counter_step(const CounterLimit& limit, CounterState state,
                                                      WallTime now, Cost cost) noexcept;
[[nodiscard]] Step<CounterState> sliding_counter_charge(const CounterLimit& limit,
                                                        CounterState state, WallTime now,
                                                        Cost cost) noexcept;
[[nodiscard]] CounterState sliding_counter_refund(CounterState state, Receipt receipt,
                                                  Cost amount) noexcept;

// Both limits have the same period, or the state has to be carried over as a charge instead.
[[nodiscard]] CounterState sliding_counter_convert(const CounterLimit& from, const CounterLimit& to,
                                                   CounterState state, WallTime now,
                                                   OnChange change) noexcept;

}  // namespace sluice::core
