#include "net/timer_wheel.h"

#include <algorithm>

namespace sluice::net {

std::uint64_t TimerWheel::floor_tick(MonoTime time) noexcept {
  const std::int64_t nanos = std::max<std::int64_t>(time.time_since_epoch().count(), 0);
  return static_cast<std::uint64_t>(nanos) >> kTickBits;
}

std::uint64_t TimerWheel::ceil_tick(MonoTime time) noexcept {
  const std::int64_t nanos = std::max<std::int64_t>(time.time_since_epoch().count(), 0);
  constexpr std::uint64_t kRest = (std::uint64_t{1} << kTickBits) - 1;
  return (static_cast<std::uint64_t>(nanos) + kRest) >> kTickBits;
}

void TimerWheel::set(Timer& timer, MonoTime deadline) noexcept {
  timer.due_ = std::max(ceil_tick(deadline), tick_ + 1);
  const bool looked_at_in_time = timer.is_linked() && timer.looked_at_ <= timer.due_;
  if (!looked_at_in_time) place(timer);
}

void TimerWheel::place(Timer& timer) noexcept {
  const auto highest = static_cast<unsigned>(std::bit_width(timer.due_ ^ tick_)) - 1;
  const std::size_t level = highest / kGroupBits;
  const unsigned shift = static_cast<unsigned>(level) * kGroupBits;
  const auto slot = static_cast<unsigned>((timer.due_ >> shift) % kSlots);
  timer.looked_at_ = start_of(level, slot);
  levels_[level].slots[slot].push_back(timer);
  levels_[level].filled |= std::uint64_t{1} << slot;
  filled_levels_ |= 1U << level;
}

// Filled slots lie ahead of the present tick in the same turn of their level's wheel.
std::uint64_t TimerWheel::start_of(std::size_t level, unsigned slot) const noexcept {
  const unsigned shift = static_cast<unsigned>(level) * kGroupBits;
  const std::uint64_t turn = tick_ >> (shift + kGroupBits) << (shift + kGroupBits);
  return turn | std::uint64_t{slot} << shift;
}

// What lies on a lower level comes before everything on the levels above.
std::optional<std::uint64_t> TimerWheel::next_tick() const noexcept {
  if (filled_levels_ == 0) return std::nullopt;
  const auto level = static_cast<std::size_t>(std::countr_zero(filled_levels_));
  return start_of(level, static_cast<unsigned>(std::countr_zero(levels_[level].filled)));
}

std::optional<MonoTime> TimerWheel::next() const noexcept {
  const std::optional<std::uint64_t> tick = next_tick();
  if (!tick) return std::nullopt;
  constexpr auto kLast = static_cast<std::uint64_t>(MonoTime::max().time_since_epoch().count());
  return MonoTime{Nanos{static_cast<std::int64_t>(std::min(*tick << kTickBits, kLast))}};
}

void TimerWheel::advance(MonoTime now) {
  const std::uint64_t target = floor_tick(now);
  for (auto next = next_tick(); next && *next <= target; next = next_tick()) {
    List<Timer> timers;
    take_first_slot(timers);
    tick_ = *next;
    run_or_place(timers);
  }
  tick_ = std::max(tick_, target);
}

void TimerWheel::take_first_slot(List<Timer>& into) noexcept {
  const auto index = static_cast<std::size_t>(std::countr_zero(filled_levels_));
  Level& level = levels_[index];
  into.take(level.slots[static_cast<std::size_t>(std::countr_zero(level.filled))]);
  level.filled &= level.filled - 1;
  if (level.filled == 0) filled_levels_ &= filled_levels_ - 1;
}

// One by one from the front: what runs may take any other timer out of the list.
void TimerWheel::run_or_place(List<Timer>& timers) {
  while (Timer* const timer = timers.pop_front()) {
    if (!timer->is_set()) continue;
    if (timer->due_ > tick_) {
      place(*timer);
      continue;
    }
    timer->cancel();
    timer->on_due_();
  }
}

}  // namespace sluice::net
