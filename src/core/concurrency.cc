#include <sluice/core/concurrency.h>
#include <sluice/int128.h>

#include <algorithm>

namespace sluice::core {
namespace {

std::int64_t generation_at(const ConcurrencyLimit& limit, MonoTime now) noexcept {
  return floor_div(now.time_since_epoch().count(), limit.slot_ttl.count());
}

ConcurrencyState seen_at(const ConcurrencyLimit& limit, ConcurrencyState state, MonoTime now,
                         bool may_write = true) noexcept {
  const std::int64_t generation = generation_at(limit, now);
  if (generation == state.generation) return state;
  if (generation == state.generation + 1) {
    return {.generation = generation, .previous = state.current, .current = 0};
  }
  if (generation > state.generation) return {.generation = generation};
  const Nanos ahead = limit.slot_ttl * state.generation - now.time_since_epoch();
  if (!may_write || !clock_was_set_back(ahead, limit.slot_ttl)) return state;
  return {.generation = generation, .previous = 0, .current = state.previous + state.current};
}

// More than the amount may be in flight after the amount was lowered.
Cost room(const ConcurrencyLimit& limit, ConcurrencyState state) noexcept {
  return room_left(limit.amount, state.previous + state.current);
}

Nanos lapse_after(const ConcurrencyLimit& limit, ConcurrencyState state, MonoTime now) noexcept {
  const Nanos generation_end = limit.slot_ttl * (state.generation + 1) - now.time_since_epoch();
  if (state.current > 0) return generation_end + limit.slot_ttl;
  return state.previous > 0 ? generation_end : Nanos{0};
}

Step<ConcurrencyState> answer(const ConcurrencyLimit& limit, ConcurrencyState seen,
                              ConcurrencyState state, MonoTime now, Verdict verdict,
                              Cost taken) noexcept {
  return {.state = state,
          .decision = {.verdict = verdict,
                       .limit = limit.amount,
                       .remaining = room(limit, seen),
                       .reset_after = lapse_after(limit, seen, now),
                       .retry_after = std::nullopt},
          .receipt = {.mark = taken > 0 ? seen.generation : 0, .cost = taken}};
}

// Takes up to `cost` slots of a lease out of the counters and says how many there were.
Cost take_out(ConcurrencyState& state, Receipt lease, Cost cost) noexcept {
  const Cost wanted = std::min(cost, lease.cost);
  Cost* counter = lease.mark == state.generation       ? &state.current
                  : lease.mark == state.generation - 1 ? &state.previous
                                                       : nullptr;
  if (counter == nullptr) return 0;
  const Cost taken = std::min(wanted, *counter);
  *counter -= taken;
  return taken;
}

}  // namespace

Step<ConcurrencyState> concurrency_step(const ConcurrencyLimit& limit, ConcurrencyState state,
                                        MonoTime now, Cost cost) noexcept {
  ConcurrencyState seen = seen_at(limit, state, now, writes(cost, limit.amount));
  if (cost == 0) return answer(limit, seen, state, now, Verdict::allowed, 0);
  if (cost > limit.amount) return answer(limit, seen, state, now, Verdict::never, 0);
  if (cost > room(limit, seen)) {
    const ConcurrencyState kept = seen.generation < state.generation ? seen : state;
    return answer(limit, seen, kept, now, Verdict::rejected, 0);
  }
  seen.current += cost;
  return answer(limit, seen, seen, now, Verdict::allowed, cost);
}

Step<ConcurrencyState> concurrency_charge(const ConcurrencyLimit& limit, ConcurrencyState state,
                                          MonoTime now, Cost cost) noexcept {
  ConcurrencyState seen = seen_at(limit, state, now);
  const Cost taken = std::min(cost, room(limit, seen));
  seen.current += taken;
  return answer(limit, seen, seen, now, Verdict::allowed, taken);
}

ConcurrencyState concurrency_release(const ConcurrencyLimit& limit, ConcurrencyState state,
                                     MonoTime now, Receipt lease, Cost amount) noexcept {
  ConcurrencyState seen = seen_at(limit, state, now);
  return take_out(seen, lease, amount) > 0 ? seen : state;
}

ConcurrencyState concurrency_convert(const ConcurrencyLimit& from, const ConcurrencyLimit& to,
                                     ConcurrencyState state, MonoTime now) noexcept {
  if (from.slot_ttl == to.slot_ttl) return state;
  const ConcurrencyState seen = seen_at(from, state, now);
  return {
      .generation = generation_at(to, now), .previous = 0, .current = seen.previous + seen.current};
}

Step<ConcurrencyState> concurrency_renew(const ConcurrencyLimit& limit, ConcurrencyState state,
                                         MonoTime now, Receipt lease) noexcept {
  ConcurrencyState seen = seen_at(limit, state, now);
  const Cost renewed = take_out(seen, lease, lease.cost);
  seen.current += renewed;
  return answer(limit, seen, renewed > 0 ? seen : state, now, Verdict::allowed, renewed);
}

}  // namespace sluice::core
