// Time, as strong types.
//
// Two kinds of instant exist and never convert into each other by accident: MonoTime measures how
// much time passed, WallTime names a calendar instant (nanoseconds since 1970-01-01T00:00:00Z).
// A front end reads its clock once per request and passes a `Now` down; nothing below reads a
// clock, so a decision is a function of its arguments alone.
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice {

using Nanos = std::chrono::duration<std::int64_t, std::nano>;

// Tags in the shape of std::chrono clocks, without now(): instants come from a sluice::Clock.
struct MonoBase {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Nanos;
  using time_point = std::chrono::time_point<MonoBase, Nanos>;
  static constexpr bool is_steady = true;
};
struct WallBase {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Nanos;
  using time_point = std::chrono::time_point<WallBase, Nanos>;
  static constexpr bool is_steady = false;
};

using MonoTime = MonoBase::time_point;
using WallTime = WallBase::time_point;

// Calendar instants lie between 1970 and the start of 2250. What a limit adds to one of them (a
// window, a drain, a queue, a lease) is a few years at most and cannot overflow.
inline constexpr WallTime kWallTimeEnd{std::chrono::seconds{8'835'955'200}};

// One reading of both clocks: monotonic time, and how far the wall clock is from it.
struct Now {
  MonoTime mono;
  Nanos wall_offset{0};

  [[nodiscard]] constexpr WallTime wall() const noexcept {
    return WallTime{mono.time_since_epoch() + wall_offset};
  }
};

}  // namespace sluice
