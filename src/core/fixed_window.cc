#include <sluice/core/fixed_window.h>
#include <sluice/int128.h>

#include <algorithm>

namespace sluice::core {
namespace {

// The window that counts at some instant, on whichever time base, and what it has counted.
struct Current {
  Cost amount;
  bool count_rejected;
  std::int64_t now;
  std::int64_t start;
  std::int64_t end;
  Cost count;
};

Window window_at(const WindowLimit& limit, WallTime at) noexcept {
  if (limit.calendar) return limit.calendar->window_at(at);
  const std::int64_t period = limit.period.count();
  const std::int64_t start = floor_div(at.time_since_epoch().count(), period) * period;
  return {.start = WallTime{Nanos{start}}, .end = WallTime{Nanos{start + period}}};
}

Current current_window(const WindowLimit& limit, WindowState state, WallTime now,
                       bool may_write) noexcept {
  const Window shown = window_at(limit, now);
  const WallTime counted{Nanos{state.start}};
  Window window = shown;
  Cost count = state.count;
  if (counted < shown.start) {
    count = 0;
  } else if (counted > shown.start) {
    const bool set_back = clock_was_set_back(counted - now, shown.end - shown.start);
    if (!set_back || !may_write) window = window_at(limit, counted);
  }
  return {.amount = limit.amount,
          .count_rejected = limit.count_rejected,
          .now = now.time_since_epoch().count(),
          .start = window.start.time_since_epoch().count(),
          .end = window.end.time_since_epoch().count(),
          .count = count};
}

Current current_window(const FirstRequestLimit& limit, WindowState state, MonoTime now,
                       bool may_write) noexcept {
  const std::int64_t now_ns = now.time_since_epoch().count();
  const std::int64_t period = limit.period.count();
  std::int64_t start = state.start;
  Cost count = state.count;
  if (may_write && clock_was_set_back(Nanos{start - now_ns}, Nanos{0})) start = now_ns;
  if (count == 0 || now_ns - start >= period) {
    start = now_ns;
    count = 0;
  }
  return {.amount = limit.amount,
          .count_rejected = limit.count_rejected,
          .now = now_ns,
          .start = start,
          .end = start + period,
          .count = count};
}

Step<WindowState> answer(const Current& window, WindowState state, Verdict verdict,
                         Cost charged) noexcept {
  Decision decision{
      .verdict = verdict,
      .limit = window.amount,
      .remaining = room_left(window.amount, window.count),
      .reset_after = Nanos{window.count > 0 ? window.end - window.now : 0},
      .retry_after = std::nullopt,
  };
  if (verdict == Verdict::rejected) decision.retry_after = Nanos{window.end - window.now};
  return {.state = state,
          .decision = decision,
          .receipt = {.mark = charged > 0 ? window.start : 0, .cost = charged}};
}

WindowState stored(const Current& window) noexcept {
  return {.start = window.start, .count = window.count};
}

Step<WindowState> step(Current window, WindowState state, Cost cost) noexcept {
  if (cost == 0) return answer(window, state, Verdict::allowed, 0);
  if (cost > window.amount) return answer(window, state, Verdict::never, 0);
  if (cost <= room_left(window.amount, window.count)) {
    window.count += cost;
    return answer(window, stored(window), Verdict::allowed, cost);
  }
  if (window.count_rejected) window.count = std::max(window.count, window.amount);
  return answer(window, stored(window), Verdict::rejected, 0);
}

Step<WindowState> charge(Current window, Cost cost) noexcept {
  const Cost charged = std::min(cost, room_left(window.amount, window.count));
  window.count += charged;
  return answer(window, stored(window), Verdict::allowed, charged);
}

}  // namespace

Step<WindowState> fixed_window_step(const WindowLimit& limit, WindowState state, WallTime now,
                                    Cost cost) noexcept {
  return step(current_window(limit, state, now, writes(cost, limit.amount)), state, cost);
}

Step<WindowState> fixed_window_charge(const WindowLimit& limit, WindowState state, WallTime now,
                                      Cost cost) noexcept {
  return charge(current_window(limit, state, now, true), cost);
}

WindowState window_refund(WindowState state, Receipt receipt, Cost amount) noexcept {
  if (receipt.mark != state.start) return state;  // its window has passed
  state.count -= std::min({amount, receipt.cost, state.count});
  return state;
}

WindowState window_convert(Cost from, Cost to, WindowState state, OnChange change) noexcept {
  return {.start = state.start, .count = converted_count(from, to, state.count, change)};
}

Step<WindowState> first_request_step(const FirstRequestLimit& limit, WindowState state,
                                     MonoTime now, Cost cost) noexcept {
  return step(current_window(limit, state, now, writes(cost, limit.amount)), state, cost);
}

Step<WindowState> first_request_charge(const FirstRequestLimit& limit, WindowState state,
                                       MonoTime now, Cost cost) noexcept {
  return charge(current_window(limit, state, now, true), cost);
}

}  // namespace sluice::core
