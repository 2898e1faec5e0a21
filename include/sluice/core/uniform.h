// The same names for every algorithm.
//
// Overloads that differ by the limit's type alone: a store of any state calls
// step(limit, state, now, cost) and need not know which clock an algorithm reads. States too large
// to copy are views and change in place.
#pragma once

#include <sluice/core/compiled_limit.h>
#include <sluice/core/step.h>
#include <sluice/time.h>

namespace sluice::core {

// What is kept of a key under a kind of limit.
template <class Limit>
struct StateOf;
template <>
struct StateOf<GcraLimit> {
  using State = GcraState;
};
template <>
struct StateOf<IntervalLimit> {
  using State = IntervalState;
};
template <>
struct StateOf<WindowLimit> {
  using State = WindowState;
};
template <>
struct StateOf<FirstRequestLimit> {
  using State = WindowState;
};
template <>
struct StateOf<LogLimit> {
  using State = LogView;
};
template <>
struct StateOf<CounterLimit> {
  using State = CounterState;
};
template <>
struct StateOf<BucketsLimit> {
  using State = BucketsView;
};
template <>
struct StateOf<ConcurrencyLimit> {
  using State = ConcurrencyState;
};
template <class Limit>
using StateFor = typename StateOf<Limit>::State;

// ---- step: decide -----------------------------------------------------------------------------

[[nodiscard]] inline auto step(const GcraLimit& l, GcraState s, Now now, Cost cost) noexcept {
  return gcra_step(l, s, now.mono, cost);
}
[[nodiscard]] inline auto step(const IntervalLimit& l, IntervalState s, Now now,
                               Cost cost) noexcept {
  return interval_step(l, s, now.wall(), cost);
}
[[nodiscard]] inline auto step(const WindowLimit& l, WindowState s, Now now, Cost cost) noexcept {
  return fixed_window_step(l, s, now.wall(), cost);
}
[[nodiscard]] inline auto step(const FirstRequestLimit& l, WindowState s, Now now,
                               Cost cost) noexcept {
  return first_request_step(l, s, now.mono, cost);
}
[[nodiscard]] inline auto step(const LogLimit& l, LogView s, Now now, Cost cost) noexcept {
  return sliding_log_step(l, s, now.mono, cost);
}
[[nodiscard]] inline auto step(const CounterLimit& l, CounterState s, Now now, Cost cost) noexcept {
  return sliding_counter_step(l, s, now.wall(), cost);
}
[[nodiscard]] inline auto step(const BucketsLimit& l, BucketsView s, Now now, Cost cost) noexcept {
  return sliding_buckets_step(l, s, now.wall(), cost);
}
[[nodiscard]] inline auto step(const ConcurrencyLimit& l, ConcurrencyState s, Now now,
                               Cost cost) noexcept {
  return concurrency_step(l, s, now.mono, cost);
}

// ---- charge: a cost that cannot be rejected any more -------------------------------------------

[[nodiscard]] inline auto charge(const GcraLimit& l, GcraState s, Now now, Cost cost) noexcept {
  return gcra_charge(l, s, now.mono, cost);
}
[[nodiscard]] inline auto charge(const IntervalLimit& l, IntervalState s, Now now,
                                 Cost cost) noexcept {
  return interval_charge(l, s, now.wall(), cost);
}
[[nodiscard]] inline auto charge(const WindowLimit& l, WindowState s, Now now, Cost cost) noexcept {
  return fixed_window_charge(l, s, now.wall(), cost);
}
[[nodiscard]] inline auto charge(const FirstRequestLimit& l, WindowState s, Now now,
                                 Cost cost) noexcept {
  return first_request_charge(l, s, now.mono, cost);
}
[[nodiscard]] inline auto charge(const LogLimit& l, LogView s, Now now, Cost cost) noexcept {
  return sliding_log_charge(l, s, now.mono, cost);
}
[[nodiscard]] inline auto charge(const CounterLimit& l, CounterState s, Now now,
                                 Cost cost) noexcept {
  return sliding_counter_charge(l, s, now.wall(), cost);
}
[[nodiscard]] inline auto charge(const BucketsLimit& l, BucketsView s, Now now,
                                 Cost cost) noexcept {
  return sliding_buckets_charge(l, s, now.wall(), cost);
}
[[nodiscard]] inline auto charge(const ConcurrencyLimit& l, ConcurrencyState s, Now now,
                                 Cost cost) noexcept {
  return concurrency_charge(l, s, now.mono, cost);
}

// ---- refund: up to `amount` of a charge, once -------------------------------------------------

[[nodiscard]] inline auto refund(const GcraLimit& l, GcraState s, Now now, Receipt receipt,
                                 Cost amount) noexcept {
  return gcra_refund(l, s, now.mono, receipt, amount);
}
[[nodiscard]] inline auto refund(const IntervalLimit& l, IntervalState s, Now now, Receipt receipt,
                                 Cost amount) noexcept {
  return interval_refund(l, s, now.wall(), receipt, amount);
}
[[nodiscard]] inline auto refund(const WindowLimit&, WindowState s, Now, Receipt receipt,
                                 Cost amount) noexcept {
  return window_refund(s, receipt, amount);
}
[[nodiscard]] inline auto refund(const FirstRequestLimit&, WindowState s, Now, Receipt receipt,
                                 Cost amount) noexcept {
  return window_refund(s, receipt, amount);
}
inline void refund(const LogLimit&, LogView s, Now, Receipt receipt, Cost amount) noexcept {
  sliding_log_refund(s, receipt, amount);
}
[[nodiscard]] inline auto refund(const CounterLimit&, CounterState s, Now, Receipt receipt,
                                 Cost amount) noexcept {
  return sliding_counter_refund(s, receipt, amount);
}
inline void refund(const BucketsLimit&, BucketsView s, Now, Receipt receipt, Cost amount) noexcept {
  sliding_buckets_refund(s, receipt, amount);
}
[[nodiscard]] inline auto refund(const ConcurrencyLimit& l, ConcurrencyState s, Now now,
                                 Receipt lease, Cost amount) noexcept {
  return concurrency_release(l, s, now.mono, lease, amount);
}

// ---- edits ------------------------------------------------------------------------------------

// Whether states of one limit can be read by the other; if not, the usage is charged again.
[[nodiscard]] inline bool same_grid(const GcraLimit&, const GcraLimit&) noexcept { return true; }
[[nodiscard]] inline bool same_grid(const WindowLimit& from, const WindowLimit& to) noexcept {
  if (!from.calendar || !to.calendar) {
    return from.calendar == to.calendar && from.period == to.period;
  }
  return *from.calendar == *to.calendar;
}
[[nodiscard]] inline bool same_grid(const BucketsLimit& from, const BucketsLimit& to) noexcept {
  return from.width == to.width && from.slices == to.slices;
}
[[nodiscard]] inline bool same_grid(const ConcurrencyLimit&, const ConcurrencyLimit&) noexcept {
  return true;
}
template <class Limit>
[[nodiscard]] bool same_grid(const Limit& from, const Limit& to) noexcept {
  return from.period == to.period;
}

// Whether a receipt issued before an edit, on the same grid, still names its charge after it.
[[nodiscard]] inline bool receipts_survive(const GcraLimit&, const GcraLimit&, OnChange) noexcept {
  return false;  // ticks have another size
}
[[nodiscard]] inline bool receipts_survive(const IntervalLimit&, const IntervalLimit&,
                                           OnChange) noexcept {
  return false;
}
[[nodiscard]] inline bool receipts_survive(const LogLimit& from, const LogLimit& to,
                                           OnChange change) noexcept {
  return change == OnChange::keep && from.amount <= to.amount;
}
[[nodiscard]] inline bool receipts_survive(const ConcurrencyLimit& from, const ConcurrencyLimit& to,
                                           OnChange) noexcept {
  return from.slot_ttl == to.slot_ttl;
}
template <class Limit>
[[nodiscard]] bool receipts_survive(const Limit&, const Limit&, OnChange change) noexcept {
  return change == OnChange::keep;
}

// The state under an edited limit on the same grid.
[[nodiscard]] inline auto convert(const GcraLimit& from, const GcraLimit& to, GcraState s, Now now,
                                  OnChange change) noexcept {
  return gcra_convert(from, to, s, now.mono, change);
}
[[nodiscard]] inline auto convert(const IntervalLimit& from, const IntervalLimit& to,
                                  IntervalState s, Now now, OnChange change) noexcept {
  return interval_convert(from, to, s, now.wall(), change);
}
[[nodiscard]] inline auto convert(const WindowLimit& from, const WindowLimit& to, WindowState s,
                                  Now, OnChange change) noexcept {
  return window_convert(from.amount, to.amount, s, change);
}
[[nodiscard]] inline auto convert(const FirstRequestLimit& from, const FirstRequestLimit& to,
                                  WindowState s, Now, OnChange change) noexcept {
  return window_convert(from.amount, to.amount, s, change);
}
inline void convert(const LogLimit& from, const LogLimit& to, LogView s, Now now,
                    OnChange change) noexcept {
  sliding_log_convert(from, to, s, now.mono, change);
}
[[nodiscard]] inline auto convert(const CounterLimit& from, const CounterLimit& to, CounterState s,
                                  Now now, OnChange change) noexcept {
  return sliding_counter_convert(from, to, s, now.wall(), change);
}
inline void convert(const BucketsLimit& from, const BucketsLimit& to, BucketsView s, Now now,
                    OnChange change) noexcept {
  sliding_buckets_convert(from, to, s, now.wall(), change);
}
[[nodiscard]] inline auto convert(const ConcurrencyLimit& from, const ConcurrencyLimit& to,
                                  ConcurrencyState s, Now now, OnChange) noexcept {
  return concurrency_convert(from, to, s, now.mono);
}

}  // namespace sluice::core
