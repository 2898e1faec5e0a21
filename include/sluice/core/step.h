// What all algorithms share.
//
// Every algorithm is a family of pure functions over (limit, state, now, cost): no clock, no lock,
// no allocation. Callers own the storage of states and the retries of a compare-and-swap. The rules
// that hold for all of them:
//
//  - A grant rounds down, a wait rounds up: a client that waits exactly `retry_after` is admitted;
//    a nanosecond earlier it is rejected.
//  - A rejected request changes no state, unless the limit counts rejected requests. A request of
//    cost 0 is a peek: always allowed, writes nothing.
//  - A cost above the capacity yields `never` and consumes nothing. A forced charge, for a cost
//    that is known only after the fact, saturates at the capacity.
//  - A refund returns to the place where its own charge sits, and is void once that has expired.
//  - Time that goes back grants nothing: whatever a state allows at some instant, it allows no more
//    at an earlier one. A state found more than `kClockStep` (and a full drain) ahead of its clock
//    belongs to a clock that was set back: the next request moves it, usage and all, to the new
//    time, so that a key is never locked for the size of the jump. That is the one write a
//    rejection makes. From there on time starts again: bounds hold before and after such a step,
//    not across it. A peek writes nothing and reports the state as it would stay without a request:
//    the clock has to catch up.
#pragma once

#include <sluice/decision.h>
#include <sluice/int128.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <algorithm>
#include <cstdint>

namespace sluice::core {

using Cost = std::uint32_t;

// Late threads and slewed clocks stay well below this; a larger step back is a clock that was set.
inline constexpr Nanos kClockStep = std::chrono::seconds{60};

// Names a charge so that it can be refunded, once. Opaque; a receipt that outlived an edit of its
// limit is void wherever the edit made its mark meaningless. After a partial refund the caller
// lowers the cost by that much: the receipt then names the rest, which can still be refunded.
struct Receipt {
  std::int64_t mark = 0;
  Cost cost = 0;              // 0: nothing was charged, nothing to refund
  std::uint32_t edition = 0;  // for stores: which version of the limit charged it
};

// The result of a step. States too large to copy are changed in place and yield an Outcome; small
// states come back in a Step.
struct Outcome {
  Decision decision;
  Receipt receipt;
};

template <class State>
struct Step {
  State state;
  Decision decision;
  Receipt receipt;
};

// Whether a request of this cost may change the state: a peek and a `never` do not.
[[nodiscard]] constexpr bool writes(Cost cost, Cost capacity) noexcept {
  return cost > 0 && cost <= capacity;
}

// What is left of an amount. More may be in use than the amount after the limit was lowered.
[[nodiscard]] constexpr Cost room_left(Cost amount, Cost used) noexcept {
  return amount - std::min(amount, used);
}

// How far `ahead` of the clock a state may lie before it is taken for a clock that was set back.
[[nodiscard]] constexpr bool clock_was_set_back(Nanos ahead, Nanos span) noexcept {
  return ahead > (span > kClockStep ? span : kClockStep);
}

// A count under an edited limit, for all algorithms that count: the same number, even if that is
// more than the new amount, or the same share rounded up.
[[nodiscard]] constexpr Cost converted_count(Cost from, Cost to, Cost count,
                                             OnChange change) noexcept {
  switch (change) {
    case OnChange::keep: return count;
    case OnChange::proportional:
      return static_cast<Cost>(mul_div_ceil(std::min(count, from), to, from));
    case OnChange::reset: return 0;
  }
  return count;
}

}  // namespace sluice::core
