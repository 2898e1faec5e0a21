// The meter: one level that rises with every admitted cost and drains with time.
//
// All continuous buckets, and the interval bucket on its staircase clock, are this one piece of
// virtual scheduling in abstract ticks. The state is the theoretical arrival time (TAT), the
// instant at which the backlog will have drained, so the level is simply how far TAT lies ahead of
// now. There is no "last update" that a late thread could roll back.
//
// Ticks are 64-bit and wrap; the sign of a difference tells past from future, so a state has to be
// looked at (or dropped) once per half range. What the half range is, the user of the meter says.
//
// Refunds. Think of the backlog as a queue of charges that drains from the front. A charge sits
// between `mark - cost` and `mark`; a refund may take out what of it has not drained. A refund that
// takes out an earlier charge moves all later ones forward, which the state remembers as
// `refunded`: marks are TAT + refunded, and subtracting today's `refunded` yields where the charge
// ends now, or earlier. Hence a refund never takes more than its own charge still holds, in any
// order, and the bound holds for the charges that remain. A clock that was set back moves the whole
// backlog forward, which `refunded` remembers, too. A limit that never refunds has no use for it
// and needs one word of state.
#pragma once

#include <sluice/core/step.h>
#include <sluice/int128.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace sluice::core {

// Invariants, checked by compile(): unit > 0, burst > 0, capacity == burst * unit, and
// full + possible stays below a quarter of the half range.
struct Meter {
  std::int64_t unit = 1;      // ticks that one unit of cost takes to drain
  std::int64_t capacity = 1;  // ticks; up to this level, requests are allowed without a delay
  std::int64_t full = 1;      // ticks; between the two, requests are queued
  std::int64_t possible = 1;  // ticks; full and kClockStep: above it, the clock was set back
  Cost burst = 1;             // capacity in units of cost
  bool count_rejected = false;
  std::uint64_t inverse = ~std::uint64_t{0};  // inverse_of(unit)
};

// (2^64 - 1) / unit: what turns a division by the unit into a multiplication.
[[nodiscard]] constexpr std::uint64_t inverse_of(std::int64_t unit) noexcept {
  return ~std::uint64_t{0} / static_cast<std::uint64_t>(unit);
}

struct MeterState {
  std::uint64_t tat = 0;
  std::uint64_t refunded = 0;

  friend constexpr bool operator==(const MeterState&, const MeterState&) = default;
};

struct MeterStep {
  MeterState state;
  Receipt receipt;
  Verdict verdict = Verdict::allowed;
  std::int64_t level = 0;  // after this step
  std::int64_t wait = 0;   // rejected: ticks until the same request, alone, is admitted
  std::int64_t delay = 0;  // admitted: ticks to queue the request
};

// How much of the backlog is left.
[[nodiscard]] constexpr std::int64_t meter_level(const Meter& meter, MeterState state,
                                                 std::uint64_t now) noexcept {
  const auto ahead = static_cast<std::int64_t>(state.tat - now);
  if (ahead > meter.possible) return meter.full;  // the clock was set back
  return std::max<std::int64_t>(ahead, 0);
}

// Full as of now: where a state goes on after the clock was set back. The whole backlog moves, and
// the receipts with it.
[[nodiscard]] constexpr MeterState meter_rebased(const Meter& meter, MeterState state,
                                                 std::uint64_t now) noexcept {
  const std::uint64_t tat = now + static_cast<std::uint64_t>(meter.full);
  return {.tat = tat, .refunded = state.refunded + (state.tat - tat)};
}

// The state to write from.
[[nodiscard]] constexpr MeterState meter_settled(const Meter& meter, MeterState state,
                                                 std::uint64_t now) noexcept {
  const auto ahead = static_cast<std::int64_t>(state.tat - now);
  const bool set_back = ahead > meter.possible;
  return set_back ? meter_rebased(meter, state, now) : state;
}

[[nodiscard]] constexpr std::int64_t meter_remaining(const Meter& meter,
                                                     std::int64_t level) noexcept {
  const auto room = static_cast<std::uint64_t>(std::max<std::int64_t>(meter.capacity - level, 0));
  const auto unit = static_cast<std::uint64_t>(meter.unit);
  // The product is too low by less than one, for any room below 2^63.
  const auto quotient = static_cast<std::uint64_t>(Uint128{room} * meter.inverse >> 64U);
  const bool one_more = room - quotient * unit >= unit;
  return static_cast<std::int64_t>(quotient + (one_more ? 1 : 0));
}

// The level after a forced charge: up to the capacity, and never down.
[[nodiscard]] constexpr std::int64_t meter_saturated(const Meter& meter, std::int64_t level,
                                                     Cost cost) noexcept {
  const std::int64_t risen = level + std::int64_t{std::min(cost, meter.burst)} * meter.unit;
  return std::max(level, std::min(risen, meter.capacity));
}

[[nodiscard]] constexpr MeterState meter_at(std::uint64_t now, std::int64_t level,
                                            MeterState before) noexcept {
  return {.tat = now + static_cast<std::uint64_t>(level), .refunded = before.refunded};
}

[[nodiscard]] constexpr Receipt meter_receipt(MeterState state, Cost cost) noexcept {
  return {.mark = static_cast<std::int64_t>(state.tat + state.refunded), .cost = cost};
}

[[nodiscard]] constexpr MeterStep meter_step(const Meter& meter, MeterState state,
                                             std::uint64_t now, Cost cost) noexcept {
  if (!writes(cost, meter.burst)) {
    return {.state = state,
            .receipt = {},
            .verdict = cost == 0 ? Verdict::allowed : Verdict::never,
            .level = std::max<std::int64_t>(static_cast<std::int64_t>(state.tat - now), 0)};
  }

  state = meter_settled(meter, state, now);
  std::int64_t level = meter_level(meter, state, now);
  const std::int64_t rise = std::int64_t{cost} * meter.unit;
  if (level + rise <= meter.full) {
    level += rise;
    const MeterState charged = meter_at(now, level, state);
    return {.state = charged,
            .receipt = meter_receipt(charged, cost),
            .level = level,
            .delay = std::max<std::int64_t>(level - meter.capacity, 0)};
  }

  if (meter.count_rejected) level = meter_saturated(meter, level, cost);
  return {.state = meter_at(now, level, state),  // as it was, unless rebased or rejected ones count
          .receipt = {},
          .verdict = Verdict::rejected,
          .level = level,
          .wait = level + rise - meter.full};
}

// The verdict and the new state alone, in a dozen instructions, for callers that need no more.
// Unclear: one of the rare cases; call meter_step.
enum class Glance : std::uint8_t { unclear, rejected, admitted };

[[nodiscard]] constexpr Glance meter_glance(const Meter& meter, std::uint64_t& tat,
                                            std::uint64_t now, Cost cost) noexcept {
  if (meter.burst == 0) __builtin_unreachable();  // for a cost of one, nothing is left to compare
  const auto ahead = static_cast<std::int64_t>(tat - now);
  if (!writes(cost, meter.burst) || ahead > meter.possible) [[unlikely]]
    return Glance::unclear;
  const std::int64_t level = std::max<std::int64_t>(ahead, 0) + std::int64_t{cost} * meter.unit;
  if (level > meter.full) return meter.count_rejected ? Glance::unclear : Glance::rejected;
  tat = now + static_cast<std::uint64_t>(level);
  return Glance::admitted;
}

// Forced: the cost was already spent. The receipt covers what the level rose by, not the requested
// cost: a refund of a saturated charge must not erase earlier charges.
[[nodiscard]] constexpr MeterStep meter_charge(const Meter& meter, MeterState state,
                                               std::uint64_t now, Cost cost) noexcept {
  state = meter_settled(meter, state, now);
  const std::int64_t before = meter_level(meter, state, now);
  const std::int64_t level = meter_saturated(meter, before, cost);
  const MeterState charged = meter_at(now, level, state);
  return {.state = charged,
          .receipt = meter_receipt(charged, static_cast<Cost>((level - before) / meter.unit)),
          .level = level};
}

[[nodiscard]] constexpr MeterState meter_refund(const Meter& meter, MeterState state,
                                                std::uint64_t now, Receipt receipt,
                                                Cost amount) noexcept {
  state = meter_settled(meter, state, now);
  const std::int64_t level = meter_level(meter, state, now);
  const std::int64_t whole = std::int64_t{std::min(receipt.cost, meter.burst)} * meter.unit;
  const std::int64_t wanted = std::int64_t{std::min(amount, receipt.cost)} * meter.unit;
  const auto end =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(receipt.mark) - state.refunded - now);
  // Promised releases stay as they are: with a queue, charges count as drained up to the last of
  // them, so that no request overtakes the queue.
  const std::int64_t last_release = std::max<std::int64_t>(level - meter.capacity, 0);
  const std::int64_t held = std::clamp<std::int64_t>(end - last_release, 0, whole);
  const std::int64_t given = std::min({wanted, held, level});
  if (given == 0) return state;
  MeterState refunded = meter_at(now, level - given, state);
  refunded.refunded += static_cast<std::uint64_t>(given);
  return refunded;
}

// The level under an edited limit: the same cost used, or the same share of the capacity, rounded
// up and cut off at what the new limit can hold.
[[nodiscard]] constexpr std::int64_t meter_converted(const Meter& from, const Meter& to,
                                                     std::int64_t level, OnChange change) noexcept {
  const auto [numerator, denominator] = change == OnChange::keep
                                            ? std::pair{to.unit, from.unit}
                                            : std::pair{to.capacity, from.capacity};
  const Int128 converted = ceil_div(Int128{level} * numerator, Int128{denominator});
  return static_cast<std::int64_t>(std::min(converted, Int128{to.full}));
}

// The state under an edited limit. Marks that were issued before must not be read in ticks of
// another size: `refunded` starts where all of them lie in the past, which makes those receipts
// void.
[[nodiscard]] constexpr MeterState meter_restarted(MeterState before, std::uint64_t now,
                                                   std::int64_t level) noexcept {
  return {.tat = now + static_cast<std::uint64_t>(level),
          .refunded = before.tat + before.refunded - now};
}

}  // namespace sluice::core
