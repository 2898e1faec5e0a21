// Timers of one thread: cheap to set, to set again and to cancel, since every request does so.
//
// A hierarchical wheel. Time is counted in ticks of about a millisecond; level 0 has a slot for
// each of 64 ticks, level 1 for each 64 of those, and eight levels reach as far as the clock does.
// A timer lies on the level of the highest group of six bits in which its tick differs from the
// present one. When a slot comes due, those of its timers that are due run and the others are
// placed anew, closer. Every deadline takes that road, so two things come for free:
//
// - putting a deadline off only stores a number: the timer stays where it is until its slot comes
//   due, and is placed anew then;
// - cancelling only stores a number, too.
//
// The price is a slot that now and then comes due for nothing. A timer never runs early and at
// most a tick late, as far as `advance` is called in time. Nothing allocates. One thread.
#pragma once

#include "net/callback.h"
#include "net/intrusive_list.h"
#include <sluice/time.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace sluice::net {

class Timer : ListHook {
 public:
  explicit Timer(Callback<> on_due) noexcept : on_due_(on_due) {}

  [[nodiscard]] bool is_set() const noexcept { return due_ != kUnset; }
  void cancel() noexcept { due_ = kUnset; }

 private:
  friend class TimerWheel;
  friend class List<Timer>;
  static constexpr std::uint64_t kUnset = std::numeric_limits<std::uint64_t>::max();

  Callback<> on_due_;
  std::uint64_t due_ = kUnset;   // the first tick that is not before the deadline
  std::uint64_t looked_at_ = 0;  // when the slot it lies in comes due
};

class TimerWheel {
 public:
  // A power of two, so that a tick is a shift.
  static constexpr unsigned kTickBits = 20;
  static constexpr Nanos kTick{std::int64_t{1} << kTickBits};

  explicit TimerWheel(MonoTime now) noexcept : tick_(floor_tick(now)) {}

  // Whether it was set before or not. A deadline that has passed is due with the next tick: a
  // timer that sets itself again cannot keep `advance` from returning.
  void set(Timer& timer, MonoTime deadline) noexcept;

  // Runs what is due, in order of ticks. What runs may set, cancel and destroy any timer.
  void advance(MonoTime now);

  // When `advance` has something to do again, maybe only placing timers anew.
  [[nodiscard]] std::optional<MonoTime> next() const noexcept;

 private:
  static constexpr unsigned kGroupBits = 6;
  static constexpr std::size_t kSlots = std::size_t{1} << kGroupBits;
  // Enough for every tick of 63 bits of nanoseconds.
  static constexpr std::size_t kLevels = (63 - kTickBits + kGroupBits - 1) / kGroupBits;

  struct Level {
    std::uint64_t filled = 0;  // one bit per slot; a slot whose timers are gone keeps its bit
    std::array<List<Timer>, kSlots> slots;
  };

  [[nodiscard]] static std::uint64_t floor_tick(MonoTime time) noexcept;
  [[nodiscard]] static std::uint64_t ceil_tick(MonoTime time) noexcept;
  [[nodiscard]] std::optional<std::uint64_t> next_tick() const noexcept;
  [[nodiscard]] std::uint64_t start_of(std::size_t level, unsigned slot) const noexcept;
  void place(Timer& timer) noexcept;
  void take_first_slot(List<Timer>& into) noexcept;
  void run_or_place(List<Timer>& timers);

  std::uint64_t tick_;
  unsigned filled_levels_ = 0;  // one bit per level with a filled slot
  std::array<Level, kLevels> levels_;
};

}  // namespace sluice::net
