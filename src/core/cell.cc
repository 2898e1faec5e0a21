#include <sluice/core/cell.h>

#include <algorithm>
#include <utility>

namespace sluice::core {
namespace {

template <class State>
Outcome keep(State& state, const Step<State>& step) noexcept {
  state = step.state;
  return {.decision = step.decision, .receipt = step.receipt};
}

// Kind<Limit> binds an algorithm's step functions to its storage. `same_grid` says whether two
// limits can read each other's states.
template <class Limit>
struct Kind;

template <>
struct Kind<GcraLimit> {
  using Stored = Cell::Gcra;

  // Differences of ticks are good for half their range only, so the time of the last write decides
  // whether a state has drained long ago or lies far ahead of a clock that was set back.
  static Nanos range(const GcraLimit& limit) noexcept {
    return gcra_wait(limit, limit.meter.capacity + limit.meter.queue + limit.meter.slack);
  }
  static bool far_ahead(const GcraLimit& limit, const Stored& stored, Now now) noexcept {
    return stored.written && *stored.written - now.mono > range(limit);
  }
  static GcraState seen(const GcraLimit& limit, const Stored& stored, Now now) noexcept {
    if (!stored.written) return gcra_idle(limit, now.mono);
    const std::uint64_t ticks = gcra_ticks(limit, now.mono);
    if (now.mono - *stored.written > range(limit)) return meter_restarted(stored.state, ticks, 0);
    if (far_ahead(limit, stored, now)) return meter_rebased(limit.meter, stored.state, ticks);
    return stored.state;
  }
  static void write(Stored& stored, GcraState state, Now now) noexcept {
    if (stored.written && state == stored.state) return;
    stored.state = state;
    stored.written = now.mono;
  }

  static Outcome step(const GcraLimit& limit, Stored& stored, Now now, Cost cost) {
    const Step<GcraState> step = gcra_step(limit, seen(limit, stored, now), now.mono, cost);
    Outcome outcome{.decision = step.decision, .receipt = step.receipt};
    if (writes(cost, limit.meter.burst)) {
      write(stored, step.state, now);
    } else if (far_ahead(limit, stored, now)) {
      // Nothing moves the state, so the clock has to catch up with it first.
      const Nanos behind = *stored.written - now.mono;
      const Decision then = gcra_step(limit, stored.state, *stored.written, 0).decision;
      outcome.decision.reset_after = behind + then.reset_after;
    }
    return outcome;
  }
  static Outcome charge(const GcraLimit& limit, Stored& stored, Now now, Cost cost) {
    const Step<GcraState> step = gcra_charge(limit, seen(limit, stored, now), now.mono, cost);
    write(stored, step.state, now);
    return {.decision = step.decision, .receipt = step.receipt};
  }
  static void refund(const GcraLimit& limit, Stored& stored, Now now, Receipt receipt,
                     Cost amount) {
    write(stored, gcra_refund(limit, seen(limit, stored, now), now.mono, receipt, amount), now);
  }
  static bool same_grid(const GcraLimit&, const GcraLimit&) noexcept { return true; }
  static bool receipts_survive(const GcraLimit&, const GcraLimit&, OnChange) noexcept {
    return false;  // ticks have another size
  }
  static void convert(const GcraLimit& from, const GcraLimit& to, Stored& stored, Now now,
                      OnChange change) {
    write(stored, gcra_convert(from, to, seen(from, stored, now), now.mono, change), now);
  }
};

template <>
struct Kind<IntervalLimit> {
  using Stored = Cell::Interval;

  static Outcome step(const IntervalLimit& limit, Stored& stored, Now now, Cost cost) {
    return keep(stored.state, interval_step(limit, stored.state, now.wall(), cost));
  }
  static Outcome charge(const IntervalLimit& limit, Stored& stored, Now now, Cost cost) {
    return keep(stored.state, interval_charge(limit, stored.state, now.wall(), cost));
  }
  static void refund(const IntervalLimit& limit, Stored& stored, Now now, Receipt receipt,
                     Cost amount) {
    stored.state = interval_refund(limit, stored.state, now.wall(), receipt, amount);
  }
  static bool same_grid(const IntervalLimit& from, const IntervalLimit& to) noexcept {
    return from.period == to.period;
  }
  static bool receipts_survive(const IntervalLimit&, const IntervalLimit&, OnChange) noexcept {
    return false;
  }
  static void convert(const IntervalLimit& from, const IntervalLimit& to, Stored& stored, Now now,
                      OnChange change) {
    stored.state = interval_convert(from, to, stored.state, now.wall(), change);
  }
};

template <>
struct Kind<WindowLimit> {
  using Stored = Cell::Window;

  static Outcome step(const WindowLimit& limit, Stored& stored, Now now, Cost cost) {
    return keep(stored.state, fixed_window_step(limit, stored.state, now.wall(), cost));
  }
  static Outcome charge(const WindowLimit& limit, Stored& stored, Now now, Cost cost) {
    return keep(stored.state, fixed_window_charge(limit, stored.state, now.wall(), cost));
  }
  static void refund(const WindowLimit&, Stored& stored, Now, Receipt receipt, Cost amount) {
    stored.state = window_refund(stored.state, receipt, amount);
  }
  static bool same_grid(const WindowLimit& from, const WindowLimit& to) noexcept {
    if (!from.calendar || !to.calendar)
      return from.calendar == to.calendar && from.period == to.period;
    return *from.calendar == *to.calendar;
  }
  static bool receipts_survive(const WindowLimit&, const WindowLimit&, OnChange change) noexcept {
    return change == OnChange::keep;
  }
  static void convert(const WindowLimit& from, const WindowLimit& to, Stored& stored, Now,
                      OnChange change) {
    stored.state = window_convert(from.amount, to.amount, stored.state, change);
  }
};

template <>
struct Kind<FirstRequestLimit> {
  using Stored = Cell::FirstRequest;

  static Outcome step(const FirstRequestLimit& limit, Stored& stored, Now now, Cost cost) {
    return keep(stored.state, first_request_step(limit, stored.state, now.mono, cost));
  }
  static Outcome charge(const FirstRequestLimit& limit, Stored& stored, Now now, Cost cost) {
    return keep(stored.state, first_request_charge(limit, stored.state, now.mono, cost));
  }
  static void refund(const FirstRequestLimit&, Stored& stored, Now, Receipt receipt, Cost amount) {
    stored.state = window_refund(stored.state, receipt, amount);
  }
  static bool same_grid(const FirstRequestLimit& from, const FirstRequestLimit& to) noexcept {
    return from.period == to.period;
  }
  static bool receipts_survive(const FirstRequestLimit&, const FirstRequestLimit&,
                               OnChange change) noexcept {
    return change == OnChange::keep;
  }
  static void convert(const FirstRequestLimit& from, const FirstRequestLimit& to, Stored& stored,
                      Now, OnChange change) {
    stored.state = window_convert(from.amount, to.amount, stored.state, change);
  }
};

template <>
struct Kind<LogLimit> {
  using Stored = Cell::Log;

  // The ring grows with use up to the amount, so that quiet keys stay small.
  static LogView view(const LogLimit& limit, Stored& stored) {
    LogHeader& header = stored.header;
    if (header.size == stored.ring.size() && header.size < limit.amount) {
      std::rotate(stored.ring.begin(), stored.ring.begin() + header.first, stored.ring.end());
      header.first = 0;
      stored.ring.resize(std::min<std::size_t>(limit.amount, stored.ring.size() * 2 + 4));
    }
    return {.header = &header, .ring = stored.ring};
  }
  static Outcome step(const LogLimit& limit, Stored& stored, Now now, Cost cost) {
    return sliding_log_step(limit, view(limit, stored), now.mono, cost);
  }
  static Outcome charge(const LogLimit& limit, Stored& stored, Now now, Cost cost) {
    return sliding_log_charge(limit, view(limit, stored), now.mono, cost);
  }
  static void refund(const LogLimit& limit, Stored& stored, Now, Receipt receipt, Cost amount) {
    sliding_log_refund(view(limit, stored), receipt, amount);
  }
  static bool same_grid(const LogLimit& from, const LogLimit& to) noexcept {
    return from.period == to.period;
  }
  static bool receipts_survive(const LogLimit& from, const LogLimit& to, OnChange change) noexcept {
    return change == OnChange::keep && from.amount <= to.amount;
  }
  static void convert(const LogLimit& from, const LogLimit& to, Stored& stored, Now now,
                      OnChange change) {
    sliding_log_convert(from, to, view(from, stored), now.mono, change);
  }
};

template <>
struct Kind<CounterLimit> {
  using Stored = Cell::Counter;

  static Outcome step(const CounterLimit& limit, Stored& stored, Now now, Cost cost) {
    return keep(stored.state, sliding_counter_step(limit, stored.state, now.wall(), cost));
  }
  static Outcome charge(const CounterLimit& limit, Stored& stored, Now now, Cost cost) {
    return keep(stored.state, sliding_counter_charge(limit, stored.state, now.wall(), cost));
  }
  static void refund(const CounterLimit&, Stored& stored, Now, Receipt receipt, Cost amount) {
    stored.state = sliding_counter_refund(stored.state, receipt, amount);
  }
  static bool same_grid(const CounterLimit& from, const CounterLimit& to) noexcept {
    return from.period == to.period;
  }
  static bool receipts_survive(const CounterLimit&, const CounterLimit&, OnChange change) noexcept {
    return change == OnChange::keep;
  }
  static void convert(const CounterLimit& from, const CounterLimit& to, Stored& stored, Now now,
                      OnChange change) {
    stored.state = sliding_counter_convert(from, to, stored.state, now.wall(), change);
  }
};

template <>
struct Kind<BucketsLimit> {
  using Stored = Cell::Buckets;

  static BucketsView view(const BucketsLimit& limit, Stored& stored) {
    stored.counters.resize(static_cast<std::size_t>(limit.slices) + 1);
    return {.header = &stored.header, .counters = stored.counters};
  }
  static Outcome step(const BucketsLimit& limit, Stored& stored, Now now, Cost cost) {
    return sliding_buckets_step(limit, view(limit, stored), now.wall(), cost);
  }
  static Outcome charge(const BucketsLimit& limit, Stored& stored, Now now, Cost cost) {
    return sliding_buckets_charge(limit, view(limit, stored), now.wall(), cost);
  }
  static void refund(const BucketsLimit& limit, Stored& stored, Now, Receipt receipt, Cost amount) {
    sliding_buckets_refund(view(limit, stored), receipt, amount);
  }
  static bool same_grid(const BucketsLimit& from, const BucketsLimit& to) noexcept {
    return from.width == to.width && from.slices == to.slices;
  }
  static bool receipts_survive(const BucketsLimit&, const BucketsLimit&, OnChange change) noexcept {
    return change == OnChange::keep;
  }
  static void convert(const BucketsLimit& from, const BucketsLimit& to, Stored& stored, Now now,
                      OnChange change) {
    sliding_buckets_convert(from, to, view(from, stored), now.wall(), change);
  }
};

template <>
struct Kind<ConcurrencyLimit> {
  using Stored = Cell::Concurrency;

  static Outcome step(const ConcurrencyLimit& limit, Stored& stored, Now now, Cost cost) {
    return keep(stored.state, concurrency_step(limit, stored.state, now.mono, cost));
  }
  static Outcome charge(const ConcurrencyLimit& limit, Stored& stored, Now now, Cost cost) {
    return keep(stored.state, concurrency_charge(limit, stored.state, now.mono, cost));
  }
  static void refund(const ConcurrencyLimit& limit, Stored& stored, Now now, Receipt receipt,
                     Cost amount) {
    stored.state = concurrency_release(limit, stored.state, now.mono, receipt, amount);
  }
  static bool same_grid(const ConcurrencyLimit&, const ConcurrencyLimit&) noexcept { return true; }
  static bool receipts_survive(const ConcurrencyLimit& from, const ConcurrencyLimit& to,
                               OnChange) noexcept {
    return from.ttl == to.ttl;
  }
};

template <class Limit>
using StoredFor = typename Kind<Limit>::Stored;

}  // namespace

template <class Stored>
Stored& Cell::stored() {
  if (auto* held = std::get_if<Stored>(&state_)) return *held;
  return state_.emplace<Stored>();
}

Outcome Cell::stamped(Outcome outcome) const noexcept {
  outcome.receipt.edition = edition_;
  return outcome;
}

Outcome Cell::decide(const CompiledLimit& limit, Now now, Cost cost) {
  return stamped(std::visit(
      [&]<class Limit>(const Limit& of) {
        return Kind<Limit>::step(of, stored<StoredFor<Limit>>(), now, cost);
      },
      limit));
}

Outcome Cell::charge(const CompiledLimit& limit, Now now, Cost cost) {
  return stamped(std::visit(
      [&]<class Limit>(const Limit& of) {
        return Kind<Limit>::charge(of, stored<StoredFor<Limit>>(), now, cost);
      },
      limit));
}

// Receipts from before an edit are void, but for leases, which edits of the TTL only move.
Receipt Cell::as_current(Receipt receipt) const noexcept {
  if (receipt.edition == edition_) return receipt;
  const auto* leases = std::get_if<Concurrency>(&state_);
  if (leases == nullptr) return {};
  for (const Carried& edit : leases->carried) {
    if (edit.edition != receipt.edition) continue;
    if (receipt.mark < edit.oldest_alive) return {};
    receipt.mark = edit.generation;
    ++receipt.edition;
  }
  return receipt.edition == edition_ ? receipt : Receipt{};
}

void Cell::carry_leases(const ConcurrencyLimit& from, const ConcurrencyLimit& to, Now now) {
  constexpr std::size_t kEditsRemembered = 4;  // a lease of before that many edits is void
  auto& leases = stored<Concurrency>();
  const std::int64_t generation =
      std::max(leases.state.generation, now.mono.time_since_epoch() / from.ttl);
  leases.state = concurrency_convert(from, to, leases.state, now.mono);
  leases.carried.push_back(
      {.edition = edition_, .oldest_alive = generation - 1, .generation = leases.state.generation});
  if (leases.carried.size() > kEditsRemembered) leases.carried.erase(leases.carried.begin());
}

void Cell::refund(const CompiledLimit& limit, Now now, Receipt receipt, Cost amount) {
  const Receipt current = as_current(receipt);
  if (current.cost == 0) return;
  std::visit(
      [&]<class Limit>(const Limit& of) {
        Kind<Limit>::refund(of, stored<StoredFor<Limit>>(), now, current, amount);
      },
      limit);
}

Receipt Cell::renew(const CompiledLimit& limit, Now now, Receipt lease) {
  const auto* concurrency = std::get_if<ConcurrencyLimit>(&limit);
  if (concurrency == nullptr) return lease;
  ConcurrencyState& state = stored<Concurrency>().state;
  const Receipt current = as_current(lease);
  return stamped(keep(state, concurrency_renew(*concurrency, state, now.mono, current))).receipt;
}

void Cell::convert(const CompiledLimit& from, const CompiledLimit& to, Now now, OnChange change) {
  const bool carried = std::visit(
      [&]<class From, class To>(const From& old_limit, const To& new_limit) {
        if constexpr (std::is_same_v<From, To>) {
          if (!Kind<To>::same_grid(old_limit, new_limit)) return false;
          const bool survive = Kind<To>::receipts_survive(old_limit, new_limit, change);
          if constexpr (std::is_same_v<To, ConcurrencyLimit>) {
            if (!survive) carry_leases(old_limit, new_limit, now);
          } else {
            Kind<To>::convert(old_limit, new_limit, stored<StoredFor<To>>(), now, change);
          }
          if (!survive) ++edition_;
          return true;
        }
        return false;
      },
      from, to);
  if (carried) return;

  const Decision before = decide(from, now, 0).decision;
  state_ = std::monostate{};
  ++edition_;
  const auto used = static_cast<Cost>(before.limit - before.remaining);
  const auto old_capacity = static_cast<Cost>(before.limit);
  const auto new_capacity = static_cast<Cost>(decide(to, now, 0).decision.limit);
  charge(to, now, converted_count(old_capacity, new_capacity, used, change));
}

}  // namespace sluice::core
