// A limit as the shared cells count it (store/local/approximate_cells.h): a meter in time.
//
// Usage is kept as the time that it takes to drain. In that unit all limits drain alike, one second
// per second, so that a cell needs no knowledge of the limit that charged it. A bucket is such a
// meter anyway; a window of length W that admits L is treated as a bucket of L that drains in W.
// Concurrency has no meter: a request in flight ends when it is released, not with time.
#pragma once

#include <sluice/core/step.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <cstdint>

namespace sluice::store {

// Ticks of 1/32 ns: a limit of 10^9 per second is enforced to 3 %, all others better, and never
// above their rate; two years still fit a quarter of the range.
inline constexpr unsigned kCellTickBits = 5;

// Invariants: capacity == burst * unit, full >= capacity, full < 2^62.
struct CellMeter {
  std::int64_t unit = 0;      // ticks that one unit of cost takes to drain; 0: no meter
  std::int64_t capacity = 0;  // ticks; the level up to which requests pass at once
  std::int64_t full = 0;      // ticks; between the two, requests are queued
  core::Cost burst = 0;
  std::uint8_t shift = 0;  // a key's own cell counts in ticks << shift
  std::uint8_t range = 0;  // which of a line's shared cells, by the time to drain

  [[nodiscard]] bool exists() const noexcept { return unit > 0; }
  [[nodiscard]] static CellMeter of(const Limit& limit) noexcept;  // a limit that compiles
};

}  // namespace sluice::store
