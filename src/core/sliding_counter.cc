#include <sluice/core/sliding_counter.h>
#include <sluice/int128.h>

#include <algorithm>

namespace sluice::core {
namespace {

// The state as seen at an instant.
struct View {
  CounterState state;
  std::int64_t elapsed;  // since the current window began; less than the period
  std::int64_t behind;   // how far the clock is behind that, after it went back
};

View seen_at(const CounterLimit& limit, CounterState state, WallTime now,
             bool may_write = true) noexcept {
  const std::int64_t period = limit.period.count();
  const std::int64_t now_ns = now.time_since_epoch().count();
  const std::int64_t index = floor_div(now_ns, period);
  const std::int64_t elapsed = now_ns - index * period;
  if (index == state.index) return {.state = state, .elapsed = elapsed, .behind = 0};
  if (index > state.index) {
    const Cost previous = index == state.index + 1 ? state.current : 0;
    return {.state = {.index = index, .previous = previous, .current = 0},
            .elapsed = elapsed,
            .behind = 0};
  }
  const std::int64_t behind = state.index * period - now_ns;
  if (!may_write || !clock_was_set_back(Nanos{behind}, limit.period)) {
    return {.state = state, .elapsed = 0, .behind = behind};
  }
  // Neither count may weigh less than it did before the step.
  return {.state = {.index = index, .previous = 0, .current = state.previous + state.current},
          .elapsed = elapsed,
          .behind = 0};
}

// What the previous window still weighs, in units of cost, rounded up.
std::int64_t weight(const CounterLimit& limit, const View& view) noexcept {
  const std::int64_t period = limit.period.count();
  return mul_div_ceil(view.state.previous, period - view.elapsed, period);
}

// Cost and weight are whole numbers, so comparing with the rounded-up weight is exact.
std::int64_t room(const CounterLimit& limit, const View& view) noexcept {
  const std::int64_t used = weight(limit, view) + view.state.current;
  return std::max<std::int64_t>(limit.amount - used, 0);
}

// The time into a window from which `previous` weighs no more than `spare`.
std::int64_t enters_at(std::int64_t period, Cost previous, std::int64_t spare) noexcept {
  if (previous == 0) return 0;
  return std::max<std::int64_t>(period - mul_div_floor(spare, period, previous), 0);
}

Nanos retry_after(const CounterLimit& limit, const View& view, Cost cost) noexcept {
  const std::int64_t period = limit.period.count();
  const std::int64_t left = std::int64_t{limit.amount} - view.state.current - cost;
  if (left >= 0) {
    return Nanos{enters_at(period, view.state.previous, left) - view.elapsed + view.behind};
  }
  // Not in this window; in the next one today's count is the previous one.
  const std::int64_t next =
      enters_at(period, view.state.current, std::int64_t{limit.amount} - cost);
  return Nanos{period - view.elapsed + view.behind + next};
}

Nanos reset_after(const CounterLimit& limit, const View& view) noexcept {
  const Nanos window_end = limit.period - Nanos{view.elapsed} + Nanos{view.behind};
  if (view.state.current > 0) return window_end + limit.period;
  return view.state.previous > 0 ? window_end : Nanos{0};
}

Step<CounterState> answer(const CounterLimit& limit, const View& view, CounterState state,
                          Verdict verdict, Cost charged) noexcept {
  return {.state = state,
          .decision = {.verdict = verdict,
                       .limit = limit.amount,
                       .remaining = static_cast<std::uint64_t>(room(limit, view)),
                       .reset_after = reset_after(limit, view),
                       .retry_after = std::nullopt},
          .receipt = {.mark = charged > 0 ? view.state.index : 0, .cost = charged}};
}

}  // namespace

Step<CounterState> sliding_counter_step(const CounterLimit& limit, CounterState state, WallTime now,
                                        Cost cost) noexcept {
  View view = seen_at(limit, state, now, writes(cost, limit.amount));
  if (cost == 0) return answer(limit, view, state, Verdict::allowed, 0);
  if (cost > limit.amount) return answer(limit, view, state, Verdict::never, 0);
  if (cost <= room(limit, view)) {
    view.state.current += cost;
    return answer(limit, view, view.state, Verdict::allowed, cost);
  }
  CounterState kept = view.state.index < state.index ? view.state : state;
  if (limit.count_rejected) {
    view.state.current += std::min(cost, room_left(limit.amount, view.state.current));
    kept = view.state;
  }
  Step<CounterState> refused = answer(limit, view, kept, Verdict::rejected, 0);
  refused.decision.retry_after = retry_after(limit, view, cost);
  return refused;
}

Step<CounterState> sliding_counter_charge(const CounterLimit& limit, CounterState state,
                                          WallTime now, Cost cost) noexcept {
  View view = seen_at(limit, state, now);
  const Cost charged = std::min(cost, room_left(limit.amount, view.state.current));
  view.state.current += charged;
  return answer(limit, view, view.state, Verdict::allowed, charged);
}

CounterState sliding_counter_refund(CounterState state, Receipt receipt, Cost amount) noexcept {
  const Cost wanted = std::min(amount, receipt.cost);
  if (receipt.mark == state.index) {
    state.current -= std::min(wanted, state.current);
  } else if (receipt.mark == state.index - 1) {
    state.previous -= std::min(wanted, state.previous);
  }
  return state;
}

CounterState sliding_counter_convert(const CounterLimit& from, const CounterLimit& to,
                                     CounterState state, WallTime now, OnChange change) noexcept {
  state = seen_at(from, state, now).state;
  return {.index = state.index,
          .previous = converted_count(from.amount, to.amount, state.previous, change),
          .current = converted_count(from.amount, to.amount, state.current, change)};
}

}  // namespace sluice::core
