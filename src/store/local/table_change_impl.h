// How a slot changes: at once, slowly, and when the key has none. Part of table_impl.h.
#pragma once

#include "store/local/table_find_impl.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace sluice::store {

// One per thread and kind of use: an update, and an insertion that has to make room for it.
inline thread_local StateBuffer t_state;

// ---- updates ----------------------------------------------------------------------------------

template <class Access>
void BasicTable<Access>::operate(const Check& check, const Operation& operation, Now now,
                                 Answer& answer) noexcept {
  const Places places = places_of(check.key);
  while (true) {
    const Found found = find_confirmed(places, check, now);
    const bool done = found.at != nullptr ? try_update_slowly(found, check, operation, now, answer)
                                          : try_insert(places, check, operation, now, answer);
    if (done) return;
  }
}

// Nearly all decisions: the key is in its first group, under the same limit, in a word. Then the
// whole key word is known, and one comparison finds it. `step(limit, word)` changes the word; the
// exchange to make goes to `prepared`.
//
// Every instruction counts here. While it waits for the slot's memory, the processor runs ahead,
// into the next decision, until some 200 instructions are waiting. If the load of the next slot is
// among them, two waits become one. Therefore no calls, no second check of what the exchange
// verifies anyway, and no branches that cannot be predicted.
template <class Access>
template <class StepWord>
[[gnu::always_inline]] inline Stepped BasicTable<Access>::prepare(const Check& check,
                                                                  StepWord&& step,
                                                                  Prepared& prepared) noexcept {
  const StoredLimit* const limit = known_limits_[check.limit].load(std::memory_order_acquire);
  if (limit == nullptr) [[unlikely]]
    return Stepped::not_at_all;
  const std::uint64_t key = tag_of(check.key) | limit_bits(check.limit);
  const std::size_t line = line_of(check.key);
  Pair* at = find_word(memory_.slots.data() + line * kSlotsPerLine, key);
  if (at == nullptr) at = find_word(memory_.slots.data() + (line ^ 1U) * kSlotsPerLine, key);
  if (at == nullptr) [[unlikely]]
    return Stepped::not_at_all;
  prepared.at = at;
  prepared.key = key;
  prepared.before = Access::load_state(at);
  prepared.after = prepared.before;
  const Stepped stepped = step(*limit, prepared.after);
  if (stepped != Stepped::unchanged) return stepped;
  // Without an exchange, nothing else verifies that this is the state of that key.
  const bool same = Access::load(at) == Pair{.key = key, .state = prepared.before};
  return same ? Stepped::unchanged : Stepped::not_at_all;
}

template <class Access>
[[gnu::always_inline]] inline bool BasicTable<Access>::carry_out(
    const Prepared& prepared) noexcept {
  return exchange(prepared.at, {.key = prepared.key, .state = prepared.before},
                  {.key = prepared.key, .state = prepared.after});
}

// False: nothing is done, since the decision is unusual or another thread interfered.
template <class Access>
template <class StepWord>
[[gnu::always_inline]] inline bool BasicTable<Access>::update_at_once(const Check& check,
                                                                      StepWord&& step) noexcept {
  Prepared prepared;
  switch (prepare(check, step, prepared)) {
    case Stepped::changed: return carry_out(prepared);
    case Stepped::unchanged: return true;
    case Stepped::not_at_all: break;
  }
  return false;
}

template <class Access>
void BasicTable<Access>::decide(const Check& check, Now now, Answer& answer) noexcept {
  const bool done = update_at_once(check, [&](const StoredLimit& limit, std::uint64_t& word) {
    answer.charge.limit = check.limit;
    return limit.step(word, now, check.cost, answer.decision, answer.charge.receipt);
  });
  if (done) [[likely]]
    return;
  operate(check, {.action = Action::decide, .cost = check.cost, .receipt = {}}, now, answer);
}

template <class Access>
[[gnu::always_inline]] inline bool BasicTable<Access>::admits(const Check& check,
                                                              Now now) noexcept {
  bool admitted = false;
  const bool done = update_at_once(check, [&](const StoredLimit& limit, std::uint64_t& word) {
    const Stepped stepped = limit.admit(word, now, check.cost);
    admitted = stepped == Stepped::changed;
    return stepped;
  });
  if (done) [[likely]]
    return admitted;
  // Field by field, and by value, so that the caller need not have the check in memory.
  return admits_slowly({.key = {.low = check.key.low},
                        .limit = check.limit,
                        .cost = check.cost,
                        .change = check.change,
                        .on_table_full = check.on_table_full},
                       now);
}

template <class Access>
bool BasicTable<Access>::admits_slowly(Check check, Now now) noexcept {
  return decide(check, now).decision.allowed();
}

template <class Access>
bool BasicTable<Access>::load_state(const Found& found, StateBuffer& state) noexcept {
  if ((found.pair.key & kWide) == 0) {
    state.set(found.pair.state);
    return true;
  }
  const bool readable = blocks_.read(Handle::from(found.pair.state), state);
  if (Access::load(found.at) != found.pair) return false;
  if (!readable) state.set(0);  // damaged memory: the key has no known usage
  return true;
}

// Converts a state that another limit wrote into one of the check's limit. If the other limit is no
// longer known, the state becomes idle.
template <class Access>
void BasicTable<Access>::carry_over(Pair written, const Check& check, StateBuffer& state,
                                    Now now) noexcept {
  const StoredLimit& limit = *limits_.find(check.limit);
  const StoredLimit* const writer = limit_of(written);
  if (writer != nullptr) {
    limit.carry_over(*writer, state, now, check.change);
  } else {
    state.set(limit.idle(now));
  }
}

template <class Access>
bool BasicTable<Access>::try_update_slowly(const Found& found, const Check& check,
                                           const Operation& operation, Now now,
                                           Answer& answer) noexcept {
  StateBuffer& state = t_state;
  if (!load_state(found, state)) return false;

  // Refunds and renewals go to the limit that wrote the state; charges bring their own limit.
  const StoredLimit* writer = limit_of(found.pair);
  const bool refunds = operation.action == Action::refund || operation.action == Action::renew;
  LimitNumber number = limit_number(found.pair.key);
  if (!refunds && number != check.limit) {
    carry_over(found.pair, check, state, now);
    writer = limits_.find(check.limit);
    number = check.limit;
  }
  answer = {};
  if (writer == nullptr) return true;

  const StoredLimit::Applied applied = writer->apply(operation, state, now);
  answer = {.decision = applied.outcome.decision,
            .charge = {.limit = number, .receipt = applied.outcome.receipt}};
  if (!applied.changed) return true;
  const Debt debt = writer->debt(state, now);
  const std::uint64_t key = (found.pair.key & ~(kLimitMask | kWide)) | limit_bits(number);
  const Published published = publish(found.at, found.pair, key, state, *writer, debt, now);
  if (published != Published::no_room) return published == Published::yes;
  if (refunds) {
    answer = {};  // usage stays as it is, and no request is admitted for it
    if (operation.action == Action::refund) count(refunds_lost_, operation.cost);
    return true;
  }
  return without_room(check, *writer, operation,
                      {.slot = &found, .forgiven = operation.cost, .room_after = debt.lasts}, now,
                      answer);
}

template <class Access>
typename BasicTable<Access>::Published BasicTable<Access>::publish(
    Pair* at, Pair before, std::uint64_t key, const StateBuffer& state, const StoredLimit& limit,
    const Debt& debt, Now now) noexcept {
  const bool was_wide = (before.key & (kWide | kTentative)) == kWide;
  const auto release_old = [&] {
    if (was_wide) blocks_.release(Handle::from(before.state), number_of(at));
  };
  if (state.is_word()) {
    if (!exchange(at, before, {.key = key, .state = state.word})) return Published::interfered;
    release_old();
    return Published::yes;
  }

  const auto ask = [&](std::uint32_t slot, Handle handle, bool may_evict) noexcept {
    Pair* const tenant = &memory_.slots[std::min<std::size_t>(slot, memory_.slots.size() - 1)];
    const Pair pair = Access::load(tenant);
    if ((pair.key & kWide) == 0 || pair.state != handle.word()) return BlockPool::Tenant::gone;
    if (tenant == at) return BlockPool::Tenant::stays;
    const Debt owed = debt_of(pair, now);
    const bool idle = owed.lasts == Nanos{0};
    if (!idle && (!may_evict || owed.share() >= debt.share())) return BlockPool::Tenant::stays;
    if (!exchange(tenant, pair, {})) return BlockPool::Tenant::stays;
    if (!idle) {
      count(evicted_);
      count(forgiven_, owed.used);
    }
    vacated(tenant, {.key = pair.key & ~kWide, .state = 0});
    return BlockPool::Tenant::gone;
  };
  const std::optional<BlockPool::Draft> draft = blocks_.take(state.size, ask);
  if (!draft) return Published::no_room;
  blocks_.write(*draft, state,
                {.expires = limit.time(now) + debt.lasts.count(),
                 .used = static_cast<std::uint32_t>(debt.used)});
  if (!exchange(at, before, {.key = key | kWide, .state = draft->handle().word()})) {
    blocks_.abandon(*draft);
    return Published::interfered;
  }
  blocks_.link(*draft, number_of(at));
  release_old();
  return Published::yes;
}

// ---- insertion --------------------------------------------------------------------------------

template <class Access>
Debt BasicTable<Access>::debt_of(Pair pair, Now now) noexcept {
  if ((pair.key & kTentative) != 0) return {.used = 0, .of = 1, .lasts = Nanos{1}};
  const StoredLimit* const limit = limit_of(pair);
  if (limit == nullptr) return {};
  if ((pair.key & kWide) == 0) return limit->debt(pair.state, now);
  const std::optional<Summary> summary = blocks_.summary(Handle::from(pair.state));
  if (!summary) return {};
  std::int64_t lasts = 0;
  const bool damaged = __builtin_sub_overflow(summary->expires, limit->time(now), &lasts);
  if (damaged || lasts <= 0) return {};
  const std::uint64_t capacity = core::capacity(limit->limit());
  return {.used = std::min<std::uint64_t>(summary->used, capacity),
          .of = capacity,
          .lasts = Nanos{lasts}};
}

template <class Access>
bool BasicTable<Access>::expired(Pair pair, Now now) noexcept {
  if ((pair.key & (kTentative | kWide)) != 0) return debt_of(pair, now).lasts == Nanos{0};
  const StoredLimit* const limit = limit_of(pair);
  return limit == nullptr || limit->expired(pair.state, now);
}

template <class Access>
typename BasicTable<Access>::Target BasicTable<Access>::choose_target(const Places& places,
                                                                      std::uint64_t share,
                                                                      Now now) noexcept {
  constexpr std::size_t kPlaces = kChoices * kSlotsPerGroup;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    Pair* const at = places.at(place);
    const Pair pair = Access::load(at);
    if (pair.key == 0 || expired(pair, now)) {
      return {.at = at, .place = place, .found = pair};
    }
  }
  Target least{.room_after = Nanos::max()};
  for (std::size_t place = 0; place < kPlaces; ++place) {
    Pair* const at = places.at(place);
    const Pair pair = Access::load(at);
    const Debt debt = debt_of(pair, now);
    least.room_after = std::min(least.room_after, debt.lasts);
    if (debt.share() >= share) continue;
    share = debt.share();
    least = {.at = at,
             .place = place,
             .found = pair,
             .forgiven = debt.used,
             .room_after = least.room_after};
  }
  return least;
}

template <class Access>
bool BasicTable<Access>::try_insert(const Places& places, const Check& check,
                                    const Operation& operation, Now now, Answer& answer) noexcept {
  // A refund cannot give back usage that was never charged or has been evicted.
  answer = {};
  if (operation.action == Action::refund || operation.action == Action::renew) return true;

  const StoredLimit& limit = *limits_.find(check.limit);
  const ApproximateCells::Usage carried = carried_for(check, limit, now);
  const bool decides = operation.action == Action::decide;
  const bool never = decides && check.cost > limit.cell_meter().burst;
  if (carried.queued > Nanos{0} && !never) [[unlikely]] {
    (void)approximate(check, limit, operation, nullptr, now, answer);  // a queue stays in its cell
    return true;
  }
  const bool asks_cells = decides && (carried.units > 0 || check.cost == 0);
  if (asks_cells && decided_by_cells(places, carried, check, limit, now, answer)) {
    count(approximated_);
    return true;
  }
  StateBuffer& state = t_state;
  begin_with(carried, limit, state, now);
  const StoredLimit::Applied applied = limit.apply(operation, state, now);
  answer = {.decision = applied.outcome.decision,
            .charge = {.limit = check.limit, .receipt = applied.outcome.receipt}};
  if (!applied.changed) return true;  // nothing to remember

  const Debt debt = limit.debt(state, now);
  const Target target = choose_target(places, newcomer_share(debt), now);
  if (target.at == nullptr) {
    return without_room(check, limit, operation,
                        {.forgiven = debt.used, .room_after = target.room_after}, now, answer);
  }

  const std::size_t choice = target.place / kSlotsPerGroup;
  const std::uint64_t key =
      places.tag | std::uint64_t{choice} << kChoiceShift | limit_bits(check.limit);
  const Pair tentative{.key = key | kTentative,
                       .state = ticket_.fetch_add(1, std::memory_order_relaxed)};
  raise_passed(places, choice);
  if (!exchange(target.at, target.found, tentative)) {
    lower_passed(places, choice);
    return false;
  }
  vacated(target.at, target.found);
  if (target.forgiven > 0) {
    count(evicted_);
    count(forgiven_, target.forgiven);
  }
  if (!survives(places, target.place, tentative)) return false;
  switch (publish(target.at, tentative, key, state, limit, debt, now)) {
    case Published::yes: count(inserted_); return true;
    case Published::interfered: return false;
    case Published::no_room: break;
  }
  (void)clear(target.at, tentative);
  return without_room(check, limit, operation, {.forgiven = debt.used, .room_after = debt.lasts},
                      now, answer);
}

// Confirms the slot that another thread places, as that thread would, but for its charge. A key
// that has to stay in its cell loses the slot.
template <class Access>
void BasicTable<Access>::help(const Places& places, const Found& tentative, const Check& check,
                              Now now) noexcept {
  const StoredLimit* const limit = limit_of(tentative.pair);
  if (limit == nullptr) return void(clear(tentative.at, tentative.pair));
  if (!survives(places, tentative.place, tentative.pair)) return;
  const ApproximateCells::Usage carried = carried_for(check, *limit, now);
  StateBuffer& state = t_state;
  begin_with(carried, *limit, state, now);
  const bool stays = carried.queued > Nanos{0} ||
                     publish(tentative.at, tentative.pair, tentative.pair.key & ~kTentative, state,
                             *limit, limit->debt(state, now), now) == Published::no_room;
  if (stays) (void)clear(tentative.at, tentative.pair);
}

// ---- keys without a slot ----------------------------------------------------------------------

// The usage in the key's own cell. Usage in a shared cell is no key's in particular and is not
// carried over: approximate_cells.h says why the bound holds without it.
template <class Access>
ApproximateCells::Usage BasicTable<Access>::carried_for(const Check& check,
                                                        const StoredLimit& limit,
                                                        Now now) const noexcept {
  if (check.on_table_full != OnTableFull::approximate) return {};
  return cells_.own_usage(check.key, limit.cell_meter(), now);
}

// A slot begins with its key's usage in cells.
template <class Access>
void BasicTable<Access>::begin_with(const ApproximateCells::Usage& carried,
                                    const StoredLimit& limit, StateBuffer& state,
                                    Now now) noexcept {
  state.set(limit.idle(now));
  if (carried.units == 0) [[likely]]
    return;
  (void)limit.apply({.action = Action::charge, .cost = carried.units, .receipt = {}}, state, now);
}

// Whether the cells alone reject the request, or answer a peek, or hold the key's queue. The key's
// own cell does so wherever the key goes: it knows better than the limit when the next request is
// allowed, since it knows when each unit was used. Other cells do so only while the key would find
// no slot.
template <class Access>
bool BasicTable<Access>::decided_by_cells(const Places& places,
                                          const ApproximateCells::Usage& carried,
                                          const Check& check, const StoredLimit& limit, Now now,
                                          Answer& answer) noexcept {
  const CellMeter& meter = limit.cell_meter();
  if (check.on_table_full != OnTableFull::approximate || !cells_.busy(now)) [[likely]]
    return false;
  if (!meter.exists() || check.cost > meter.burst) return false;
  if (carried.units == 0) {
    const Debt debt{.used = check.cost, .of = meter.burst};
    if (choose_target(places, newcomer_share(debt), now).at != nullptr) return false;
  }
  const Outcome outcome =
      cells_.count(check.key, meter, check.cost, ApproximateCells::Mode::look, now);
  const bool decided = check.cost == 0 || carried.queued > Nanos{0} ||
                       (!outcome.decision.allowed() && !limit.limit().count_rejected);
  if (decided) answer = {.decision = outcome.decision, .charge = {}};
  return decided;
}

// What a slot held before an operation, by the answer to that operation. Its new state itself would
// not do: the block of a bucket counts charges that were refunded (store/local/stored_limit.h).
template <class Access>
ApproximateCells::Usage BasicTable<Access>::held_before(const Answer& answer) noexcept {
  const auto used = static_cast<Cost>(answer.decision.limit - answer.decision.remaining);
  return {.units = used - std::min(used, answer.charge.receipt.cost),
          .queued = answer.decision.delay};
}

// Counts a key in cells. A slot whose state finds no block is given up for a cell of the key's own,
// so that one of the two counts all that the key used; beside a shared cell, which is no key's, it
// stays. No room: this limit cannot be counted in cells, or there are none.
template <class Access>
typename BasicTable<Access>::Published BasicTable<Access>::approximate(const Check& check,
                                                                       const StoredLimit& limit,
                                                                       const Operation& operation,
                                                                       const Found* slot, Now now,
                                                                       Answer& answer) noexcept {
  using Mode = ApproximateCells::Mode;
  const CellMeter& meter = limit.cell_meter();
  if (!meter.exists() || !cells_.exist()) return Published::no_room;
  const bool rejected = !answer.decision.allowed();
  if (rejected && !limit.limit().count_rejected) return Published::yes;

  const auto held = slot != nullptr ? held_before(answer) : ApproximateCells::Usage{};
  const Mode mode = rejected || operation.action == Action::charge ? Mode::force : Mode::decide;
  Outcome outcome = cells_.count(check.key, meter, operation.cost, mode, now, held);
  Receipt charged = outcome.receipt;
  if (!outcome.decision.allowed() && limit.limit().count_rejected) {
    charged = cells_.count(check.key, meter, operation.cost, Mode::force, now, held).receipt;
  }
  // The cell first: if this thread dies in between, the usage counts twice, and never not at all.
  if (slot != nullptr && ApproximateCells::issued_by_own(charged) && !clear(slot->at, slot->pair)) {
    (void)cells_.refund(check.key, meter, charged, charged.cost, now);
    return Published::interfered;
  }
  count(approximated_);
  if (rejected) return Published::yes;
  answer = {.decision = outcome.decision,
            .charge = {.limit = check.limit, .receipt = outcome.receipt}};
  return Published::yes;
}

// False: another thread interfered.
template <class Access>
bool BasicTable<Access>::without_room(const Check& check, const StoredLimit& limit,
                                      const Operation& operation, const Homeless& key, Now now,
                                      Answer& answer) noexcept {
  last_full_.store(now.mono.time_since_epoch().count(), std::memory_order_relaxed);
  const bool approximates = check.on_table_full == OnTableFull::approximate;
  if (approximates) {
    const Published counted = approximate(check, limit, operation, key.slot, now, answer);
    if (counted != Published::no_room) return counted == Published::yes;
  }
  if (!answer.decision.allowed()) return true;  // a rejected request that was to be counted
  answer.charge = {};
  if (check.on_table_full == OnTableFull::allow || (approximates && !cells_.exist())) {
    count(untracked_);
    count(forgiven_, key.forgiven);
    return true;
  }
  count(rejected_for_room_);
  answer.decision = {.verdict = Verdict::rejected,
                     .limit = core::capacity(limit.limit()),
                     .remaining = 0,
                     .reset_after = key.room_after,
                     .retry_after = key.room_after};
  return true;
}

}  // namespace sluice::store
