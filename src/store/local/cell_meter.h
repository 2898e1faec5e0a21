// A limit as the cells of keys without a slot count it (store/local/approximate_cells.h): a meter
// in time.
//
// Usage is kept as the time that it takes to drain. In that unit all limits drain alike, one second
// per second, so that a cell need not know the limit that charged it. Concurrency has no meter: a
// request in flight ends when it is released, not with time.
//
// A key's own cell and a shared cell have different scales. With L the amount, P the period and C
// the capacity, they admit at once, and drain per period:
//
//     algorithm                            own              shared
//     bucket with continuous refill        C, then L        C, then L
//     bucket with refill by interval       C, then A / 2    C, then A / 2    A = min(L, C)
//     fixed window, sliding counter        L, then L / 2    L, then L / 2
//     sliding log, sliding buckets         L, then L / 2    L / 4, then L / 4
//
// approximate_cells.h proves from these figures that a key is admitted at most twice its limit. A
// key that uses less than half of its limit in any period never exceeds the own scale: with no more
// than L / 2 per period, a meter that drains L / 2 per period never holds more than L / 2.
#pragma once

#include <sluice/core/step.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <cstdint>

namespace sluice::store {

// Ticks of 1/32 ns: a limit of 10^9 per second is enforced to 3 %, all others better, and never
// above their rate; four years still fit half of the range.
inline constexpr unsigned kCellTickBits = 5;

// Invariants: capacity is a multiple of unit, unit <= capacity <= full < 2^62.
struct CellScale {
  std::int64_t unit = 0;      // ticks that one unit of cost takes to drain
  std::int64_t capacity = 0;  // ticks; the level up to which requests are allowed at once
  std::int64_t full = 0;      // ticks; between the two, requests are queued
};

// Invariants: own.capacity == burst * own.unit; own.unit, own.capacity and own.full are multiples
// of 2^shift.
struct CellMeter {
  CellScale own;     // own.unit == 0: no meter
  CellScale shared;  // shared.capacity <= burst * shared.unit
  core::Cost burst = 0;
  std::uint8_t shift = 0;  // a key's own cell counts in ticks << shift
  std::uint8_t range = 0;  // which of a group's shared cells, by the time to drain

  [[nodiscard]] bool exists() const noexcept { return own.unit > 0; }
  [[nodiscard]] static CellMeter of(const Limit& limit) noexcept;  // a limit that compiles
};

}  // namespace sluice::store
