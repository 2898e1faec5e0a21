#include <sluice/core/cell.h>
#include <sluice/core/uniform.h>

#include <algorithm>
#include <utility>

namespace sluice::core {
namespace {

template <class State>
Outcome keep(State& state, const Step<State>& step) noexcept {
  state = step.state;
  return {.decision = step.decision, .receipt = step.receipt};
}

// Kind<Limit> binds an algorithm to its storage.
template <class Limit>
struct Kind;

template <>
struct Kind<GcraLimit> {
  using Stored = Cell::Gcra;

  // Differences of ticks are good for half their range only, so the time of the last write decides
  // whether a state has drained long ago or lies far ahead of a clock that was set back.
  static Nanos range(const GcraLimit& limit) noexcept {
    return gcra_wait(limit, limit.meter.possible);
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

  static Outcome decide(const GcraLimit& limit, Stored& stored, Now now, Cost cost) {
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
  static Outcome force(const GcraLimit& limit, Stored& stored, Now now, Cost cost) {
    const Step<GcraState> step = gcra_charge(limit, seen(limit, stored, now), now.mono, cost);
    write(stored, step.state, now);
    return {.decision = step.decision, .receipt = step.receipt};
  }
  static void give_back(const GcraLimit& limit, Stored& stored, Now now, Receipt receipt,
                        Cost amount) {
    write(stored, gcra_refund(limit, seen(limit, stored, now), now.mono, receipt, amount), now);
  }
  static void carry(const GcraLimit& from, const GcraLimit& to, Stored& stored, Now now,
                    OnChange change) {
    write(stored, gcra_convert(from, to, seen(from, stored, now), now.mono, change), now);
  }
};

// States of a word or two.
template <class Limit, class StoredState>
struct SmallKind {
  using Stored = StoredState;

  static Outcome decide(const Limit& limit, Stored& stored, Now now, Cost cost) {
    return keep(stored.state, step(limit, stored.state, now, cost));
  }
  static Outcome force(const Limit& limit, Stored& stored, Now now, Cost cost) {
    return keep(stored.state, charge(limit, stored.state, now, cost));
  }
  static void give_back(const Limit& limit, Stored& stored, Now now, Receipt receipt, Cost amount) {
    stored.state = refund(limit, stored.state, now, receipt, amount);
  }
  static void carry(const Limit& from, const Limit& to, Stored& stored, Now now, OnChange change) {
    stored.state = convert(from, to, stored.state, now, change);
  }
};

template <>
struct Kind<IntervalLimit> : SmallKind<IntervalLimit, Cell::Interval> {};
template <>
struct Kind<WindowLimit> : SmallKind<WindowLimit, Cell::Window> {};
template <>
struct Kind<FirstRequestLimit> : SmallKind<FirstRequestLimit, Cell::FirstRequest> {};
template <>
struct Kind<CounterLimit> : SmallKind<CounterLimit, Cell::Counter> {};
template <>
struct Kind<ConcurrencyLimit> : SmallKind<ConcurrencyLimit, Cell::Concurrency> {};

// The ring grows with use up to the amount, so that quiet keys stay small.
LogView view(const LogLimit& limit, Cell::Log& stored) {
  LogHeader& header = stored.header;
  if (header.size == stored.ring.size() && header.size < limit.amount) {
    std::rotate(stored.ring.begin(), stored.ring.begin() + header.first, stored.ring.end());
    header.first = 0;
    stored.ring.resize(std::min<std::size_t>(limit.amount, stored.ring.size() * 2 + 4));
  }
  return {.header = &header, .ring = stored.ring};
}

BucketsView view(const BucketsLimit& limit, Cell::Buckets& stored) {
  stored.counters.resize(static_cast<std::size_t>(limit.slices) + 1);
  return {.header = &stored.header, .counters = stored.counters};
}

// States that change in place.
template <class Limit, class StoredState>
struct LargeKind {
  using Stored = StoredState;

  static Outcome decide(const Limit& limit, Stored& stored, Now now, Cost cost) {
    return step(limit, view(limit, stored), now, cost);
  }
  static Outcome force(const Limit& limit, Stored& stored, Now now, Cost cost) {
    return charge(limit, view(limit, stored), now, cost);
  }
  static void give_back(const Limit& limit, Stored& stored, Now now, Receipt receipt, Cost amount) {
    refund(limit, view(limit, stored), now, receipt, amount);
  }
  static void carry(const Limit& from, const Limit& to, Stored& stored, Now now, OnChange change) {
    convert(from, to, view(from, stored), now, change);
  }
};

template <>
struct Kind<LogLimit> : LargeKind<LogLimit, Cell::Log> {};
template <>
struct Kind<BucketsLimit> : LargeKind<BucketsLimit, Cell::Buckets> {};

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
        return Kind<Limit>::decide(of, stored<StoredFor<Limit>>(), now, cost);
      },
      limit));
}

Outcome Cell::charge(const CompiledLimit& limit, Now now, Cost cost) {
  return stamped(std::visit(
      [&]<class Limit>(const Limit& of) {
        return Kind<Limit>::force(of, stored<StoredFor<Limit>>(), now, cost);
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
      std::max(leases.state.generation, now.mono.time_since_epoch() / from.slot_ttl);
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
        Kind<Limit>::give_back(of, stored<StoredFor<Limit>>(), now, current, amount);
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
          if (!same_grid(old_limit, new_limit)) return false;
          const bool survive = receipts_survive(old_limit, new_limit, change);
          if constexpr (std::is_same_v<To, ConcurrencyLimit>) {
            if (!survive) carry_leases(old_limit, new_limit, now);
          } else {
            Kind<To>::carry(old_limit, new_limit, stored<StoredFor<To>>(), now, change);
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
