// The table's members, for those who instantiate it: table.cc, and tests with an access of their
// own.
#pragma once

#include "store/local/table.h"
#include <sluice/int128.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

namespace sluice::store {

// One per thread and kind of use: an update, and an insertion that has to make room for it.
inline thread_local StateBuffer t_state;

// ---- places -----------------------------------------------------------------------------------

template <class Access>
std::uint64_t BasicTable<Access>::fingerprint_of(const Digest& key) noexcept {
  return tag_of(key) >> 28U;
}

// Of all lines: where the key is looked for first.
template <class Access>
std::size_t BasicTable<Access>::line_of(const Digest& key) const noexcept {
  return static_cast<std::size_t>(Uint128{key.low} * lines_ >> 64U);
}

template <class Access>
typename BasicTable<Access>::Places BasicTable<Access>::places_of(
    const Digest& key) const noexcept {
  const std::size_t line = line_of(key);
  return {.slots = memory_.slots.data(),
          .tag = tag_of(key),
          .line = line % 2 * kSlotsPerLine,
          .home = line / 2,
          .groups = groups()};
}

// The groups of a slot's key, told from where the slot is.
template <class Access>
typename BasicTable<Access>::Places BasicTable<Access>::places_from(
    std::size_t slot, std::uint64_t key) const noexcept {
  const std::uint64_t tag = key & kTagMask;
  const std::size_t choice = (key & kChoiceMask) >> kChoiceShift;
  const std::size_t back = choice * (groups() - stride_of(tag, groups()));
  return {.slots = memory_.slots.data(),
          .tag = tag,
          .line = 0,
          .home = moved(slot / kSlotsPerGroup, back, groups()),
          .groups = groups()};
}

template <class Access>
bool BasicTable<Access>::passed(std::size_t group) const noexcept {
  return std::atomic_ref{memory_.passed[group]}.load(std::memory_order_seq_cst) != 0;
}

// 255 means "many" and stays.
template <class Access>
void BasicTable<Access>::raise_passed(const Places& places, std::size_t choice) noexcept {
  for (std::size_t before = 0; before < choice; ++before) {
    const std::atomic_ref count{memory_.passed[places.group(before)]};
    std::uint8_t seen = count.load();
    while (seen != 255 && !count.compare_exchange_weak(seen, static_cast<std::uint8_t>(seen + 1))) {
    }
  }
}

template <class Access>
void BasicTable<Access>::lower_passed(const Places& places, std::size_t choice) noexcept {
  for (std::size_t before = 0; before < choice; ++before) {
    const std::atomic_ref count{memory_.passed[places.group(before)]};
    std::uint8_t seen = count.load();
    while (seen != 0 && seen != 255 &&
           !count.compare_exchange_weak(seen, static_cast<std::uint8_t>(seen - 1))) {
    }
  }
}

// A slot's key has gone: it passes no groups any more, and needs no block.
template <class Access>
void BasicTable<Access>::vacated(const Pair* at, Pair before) noexcept {
  if ((before.key & kWide) != 0) blocks_.release(Handle::from(before.state), number_of(at));
  const std::size_t choice = (before.key & kChoiceMask) >> kChoiceShift;
  if (choice > 0) lower_passed(places_from(number_of(at), before.key), choice);
}

// ---- exchanges --------------------------------------------------------------------------------

template <class Access>
bool BasicTable<Access>::exchange(Pair* at, Pair expected, Pair desired) noexcept {
  if (Access::exchange(at, expected, desired)) [[likely]]
    return true;
  count(failed_exchanges_);
  return false;
}

template <class Access>
bool BasicTable<Access>::clear(Pair* at, Pair expected) noexcept {
  if (!exchange(at, expected, {})) return false;
  vacated(at, expected);
  return true;
}

template <class Access>
bool BasicTable<Access>::holds(std::size_t slot, Handle handle) noexcept {
  if (slot >= memory_.slots.size()) return false;
  const Pair pair = Access::load(&memory_.slots[slot]);
  return (pair.key & kWide) != 0 && pair.state == handle.word();
}

// ---- lookup -----------------------------------------------------------------------------------

// Which slots of a line have these bits in their key words, the first slot lowest. All four at
// once: where in its line a key is cannot be predicted.
template <class Access>
[[gnu::always_inline]] inline unsigned BasicTable<Access>::matches_in(Pair* line,
                                                                      std::uint64_t mask,
                                                                      std::uint64_t bits) noexcept {
  unsigned matches = 0;
#pragma GCC unroll 4
  for (unsigned i = 0; i < kSlotsPerLine; ++i) {
    matches |= static_cast<unsigned>((Access::load_key(line + i) & mask) == bits) << i;
  }
  return matches;
}

// The slot of a line with this key word, or null. All four are compared, without a branch: which
// one it is cannot be predicted.
template <class Access>
[[gnu::always_inline]] inline Pair* BasicTable<Access>::find_word(Pair* line,
                                                                  std::uint64_t key) noexcept {
  Pair* found = nullptr;
#pragma GCC unroll 4
  for (unsigned i = 0; i < kSlotsPerLine; ++i) {
    found = Access::with_key(line + i, key, found);
  }
  return found;
}

// By reference, so that all of it stays in registers.
template <class Access>
[[gnu::always_inline]] inline bool BasicTable<Access>::find_in(const Places& places,
                                                               std::size_t choice,
                                                               Found& found) noexcept {
  const std::uint64_t tag = places.tag | std::uint64_t{choice} << kChoiceShift;
  Pair* const group = places.slots + places.group(choice) * kSlotsPerGroup;
  for (std::size_t line = 0; line < kSlotsPerGroup; line += kSlotsPerLine) {
    Pair* const slots = group + (line ^ places.line);
    for (unsigned matches = matches_in(slots, kTagMask | kChoiceMask, tag); matches != 0;
         matches &= matches - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(matches));
      found.pair = Access::load(slots + i);
      if ((found.pair.key & (kTagMask | kChoiceMask)) != tag) continue;
      found.at = slots + i;
      found.place = choice * kSlotsPerGroup + line + i;
      return true;
    }
  }
  return false;
}

template <class Access>
typename BasicTable<Access>::Found BasicTable<Access>::find(const Places& places) noexcept {
  for (std::size_t choice = 0; choice < kChoices; ++choice) {
    Found found;
    if (find_in(places, choice, found)) return found;
    if (!passed(places.group(choice))) break;
  }
  return {};
}

// The key's slot, after helping whoever is placing it.
template <class Access>
typename BasicTable<Access>::Found BasicTable<Access>::find_confirmed(const Places& places,
                                                                      Now now) noexcept {
  while (true) {
    const Found found = find(places);
    if ((found.pair.key & kTentative) == 0) return found;
    help(places, found, now);
  }
}

template <class Access>
bool BasicTable<Access>::survives(const Places& places, std::size_t place,
                                  Pair tentative) noexcept {
  for (std::size_t choice = 0; choice < kChoices; ++choice) {
    const std::size_t group = places.group(choice);
    const std::uint64_t tag = places.tag | std::uint64_t{choice} << kChoiceShift;
    for (std::size_t i = 0; i < kSlotsPerGroup; ++i) {
      const std::size_t other_place = choice * kSlotsPerGroup + i;
      if (other_place == place) continue;
      Pair* const at = places.at(other_place);
      Pair other = Access::load(at);
      // Another try when it was not removed: its owner may have taken it back for the sake of ours,
      // and if both were, two threads could go on like that.
      while ((other.key & (kTagMask | kChoiceMask)) == tag) {
        const bool removable = (other.key & kTentative) != 0 && other_place > place;
        if (!removable) {
          (void)clear(places.at(place), tentative);
          return false;
        }
        if (clear(at, other)) break;
        other = Access::load(at);
      }
    }
    if (!passed(group)) break;
  }
  return true;
}

template <class Access>
void BasicTable<Access>::help(const Places& places, const Found& tentative, Now now) noexcept {
  const StoredLimit* const limit = limit_of(tentative.pair);
  if (limit == nullptr) return void(clear(tentative.at, tentative.pair));
  if (!survives(places, tentative.place, tentative.pair)) return;
  (void)exchange(tentative.at, tentative.pair,
                 {.key = tentative.pair.key & ~kTentative, .state = limit->idle(now)});
}

// ---- updates ----------------------------------------------------------------------------------

template <class Access>
void BasicTable<Access>::operate(const Check& check, const Operation& operation, Now now,
                                 Answer& answer) noexcept {
  const Places places = places_of(check.key);
  while (true) {
    const Found found = find_confirmed(places, now);
    const bool done = found.at != nullptr ? try_update_slowly(found, check, operation, now, answer)
                                          : try_insert(places, check, operation, now, answer);
    if (done) return;
  }
}

// Nearly all decisions: the key is in its first group, under the same limit, in a word. Then the
// whole key word is known, and one comparison finds it. `step(limit, word)` changes the word; what
// is to be exchanged for that goes to `prepared`.
//
// Every instruction counts here. While it waits for the slot's memory, the processor runs ahead,
// into the next decision, until some 200 instructions are waiting; if the next slot is asked for
// within them, two waits become one. Therefore no calls, no second look at what the exchange
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
  // Whoever exchanges nothing has to make sure that this was the state of that key.
  const bool same = Access::load(at) == Pair{.key = key, .state = prepared.before};
  return same ? Stepped::unchanged : Stepped::not_at_all;
}

template <class Access>
[[gnu::always_inline]] inline bool BasicTable<Access>::carry_out(
    const Prepared& prepared) noexcept {
  return exchange(prepared.at, {.key = prepared.key, .state = prepared.before},
                  {.key = prepared.key, .state = prepared.after});
}

// False: nothing was done, it is an unusual decision, or somebody interfered.
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
                        .no_room = check.no_room},
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
  if (!readable) state.set(0);  // damaged memory: nothing is known of this key
  return true;
}

// A state that another limit wrote becomes one of the check's own; of one that nobody knows any
// more nothing is left.
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

  // Refunds and renewals go to the limit that the state belongs to, charges bring their own.
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
  if (published == Published::no_room && refunds) {
    answer = {};  // lost: what was used stays used, and nobody was admitted
  } else if (published == Published::no_room) {
    without_room(check, *writer, operation.cost, debt.lasts, answer);
  }
  return published != Published::interfered;
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
    if (!idle && !(may_evict && owed.share() < debt.share())) return BlockPool::Tenant::stays;
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
  // What was never charged, or has been forgotten, cannot be given back.
  answer = {};
  if (operation.action == Action::refund || operation.action == Action::renew) return true;

  const StoredLimit& limit = *limits_.find(check.limit);
  StateBuffer& state = t_state;
  state.set(limit.idle(now));
  const StoredLimit::Applied applied = limit.apply(operation, state, now);
  answer = {.decision = applied.outcome.decision,
            .charge = {.limit = check.limit, .receipt = applied.outcome.receipt}};
  if (!applied.changed) return true;  // nothing to remember

  const Debt debt = limit.debt(state, now);
  const Target target = choose_target(places, std::min(debt.share(), kNewcomerShare), now);
  if (target.at == nullptr) {
    without_room(check, limit, debt.used, target.room_after, answer);
    return true;
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
  without_room(check, limit, debt.used, debt.lasts, answer);
  return true;
}

template <class Access>
void BasicTable<Access>::without_room(const Check& check, const StoredLimit& limit,
                                      std::uint64_t forgiven, Nanos room_after,
                                      Answer& answer) noexcept {
  if (!answer.decision.allowed()) return;  // a denied request that was to be counted
  answer.charge = {};
  if (check.no_room == NoRoom::forgive) {
    count(untracked_);
    count(forgiven_, forgiven);
    return;
  }
  count(refused_for_room_);
  answer.decision = {.verdict = Verdict::refused,
                     .limit = core::capacity(limit.limit()),
                     .remaining = 0,
                     .reset_after = room_after,
                     .retry_after = room_after};
}

// ---- decisions --------------------------------------------------------------------------------

template <class Access>
Answer BasicTable<Access>::decide(const Check& check, Now now) noexcept {
  Answer answer;
  decide(check, now, answer);
  return answer;
}

template <class Access>
Answer BasicTable<Access>::force(const Check& check, Now now) noexcept {
  Answer answer;
  operate(check, {.action = Action::charge, .cost = check.cost, .receipt = {}}, now, answer);
  return answer;
}

template <class Access>
void BasicTable<Access>::refund(const Check& check, const Charge& charge, Now now) noexcept {
  (void)redeem(check, charge, {.action = Action::refund, .cost = check.cost, .receipt = {}}, now);
}

template <class Access>
Charge BasicTable<Access>::renew(const Check& check, const Charge& lease, Now now) noexcept {
  const Operation renewal{.action = Action::renew, .cost = lease.receipt.cost, .receipt = {}};
  return redeem(check, lease, renewal, now);
}

// An operation on a charge that was made before, if the key's state still knows of it.
template <class Access>
Charge BasicTable<Access>::redeem(const Check& check, const Charge& charge, Operation operation,
                                  Now now) noexcept {
  operation.receipt = charge.receipt;
  if (charge.receipt.cost == 0) return {};
  const Places places = places_of(check.key);
  while (true) {
    const Found found = find_confirmed(places, now);
    if (found.at == nullptr) return {};
    const StoredLimit* const holder = limit_of(found.pair);
    const StoredLimit* const issuer = limits_.find(charge.limit);
    if (holder == nullptr || issuer == nullptr) return {};
    if (holder != issuer && !holder->honours(*issuer, check.change)) return {};
    Answer answer;
    if (try_update_slowly(found, check, operation, now, answer)) return answer.charge;
  }
}

template <class Access>
void BasicTable<Access>::decide_batch(std::span<const Check> checks, Now now,
                                      std::span<Answer> answers) noexcept {
  constexpr std::size_t kAhead = 16;
  for (std::size_t i = 0; i < std::min(kAhead, checks.size()); ++i) prefetch(checks[i].key);
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (i + kAhead < checks.size()) prefetch(checks[i + kAhead].key);
    decide(checks[i], now, answers[i]);
  }
}

template <class Access>
bool BasicTable<Access>::decide_all(std::span<const Check> checks, Now now,
                                    std::span<Answer> answers) noexcept {
  for (const Check& check : checks) prefetch_group(check.key);

  // Look. What is in a word already is prepared, so that charging it is one exchange.
  std::array<Prepared, kChecksMax> prepared;
  bool admitted = true;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Check& check = checks[i];
    Answer& answer = answers[i];
    const auto step = [&](const StoredLimit& limit, std::uint64_t& word) {
      return limit.step(word, now, check.cost, answer.decision, answer.charge.receipt);
    };
    const Stepped stepped = prepare(check, step, prepared[i]);
    answer.charge.limit = check.limit;
    if (stepped != Stepped::changed) [[unlikely]] {
      prepared[i].at = nullptr;
      if (stepped == Stepped::not_at_all) answer = would_answer(check, now);
    }
    admitted &= answer.decision.allowed();
  }
  if (!admitted) {
    settle_refusal(checks, answers, now);
    return false;
  }

  // Charge; if one refuses after all, take back what was charged before it.
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (prepared[i].at != nullptr && carry_out(prepared[i])) continue;
    if (checks[i].cost == 0) continue;
    answers[i] = decide(checks[i], now);
    if (answers[i].decision.allowed()) continue;
    for (std::size_t j = 0; j < i; ++j) {
      refund(checks[j], answers[j].charge, now);
      answers[j] = peek(checks[j], now);
    }
    for (std::size_t j = i + 1; j < checks.size(); ++j) answers[j] = peek(checks[j], now);
    return false;
  }
  return true;
}

// The answer to a check, without charging it.
template <class Access>
Answer BasicTable<Access>::would_answer(const Check& check, Now now) noexcept {
  StateBuffer& state = t_state;
  const StoredLimit& limit = *limits_.find(check.limit);
  Found found;
  do {
    found = find_confirmed(places_of(check.key), now);
  } while (found.at != nullptr && !load_state(found, state));
  if (found.at == nullptr) {
    state.set(limit.idle(now));
  } else if (limit_number(found.pair.key) != check.limit) {
    carry_over(found.pair, check, state, now);
  }
  const Operation operation{.action = Action::decide, .cost = check.cost, .receipt = {}};
  return {.decision = limit.apply(operation, state, now).outcome.decision, .charge = {}};
}

template <class Access>
Answer BasicTable<Access>::peek(Check check, Now now) noexcept {
  check.cost = 0;
  return decide(check, now);
}

// Limits that refuse may have something to write down all the same: denied requests that count, a
// clock that was set back. The others say what they would without this request.
template <class Access>
void BasicTable<Access>::settle_refusal(std::span<const Check> checks, std::span<Answer> answers,
                                        Now now) noexcept {
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (answers[i].decision.allowed()) {
      answers[i] = peek(checks[i], now);
      continue;
    }
    const Answer again = decide(checks[i], now);
    if (again.decision.allowed()) {
      refund(checks[i], again.charge, now);  // somebody made room in between
    } else {
      answers[i] = again;
    }
  }
}

// ---- operators --------------------------------------------------------------------------------

template <class Access>
std::optional<typename BasicTable<Access>::Entry> BasicTable<Access>::read(const Digest& key,
                                                                           Now now) noexcept {
  const Found found = find_confirmed(places_of(key), now);
  if (found.at == nullptr) return std::nullopt;
  return read_slot(number_of(found.at), now);
}

template <class Access>
std::optional<typename BasicTable<Access>::Entry> BasicTable<Access>::read_slot(std::size_t slot,
                                                                                Now now) noexcept {
  while (true) {
    Found found{.at = &memory_.slots[slot]};
    found.pair = Access::load(found.at);
    if (found.pair.key == 0 || (found.pair.key & kTentative) != 0) return std::nullopt;
    const StoredLimit* const limit = limit_of(found.pair);
    if (limit == nullptr || expired(found.pair, now)) return std::nullopt;
    if (!load_state(found, t_state)) continue;
    const Operation peek{.action = Action::decide, .cost = 0, .receipt = {}};
    return Entry{.fingerprint = found.pair.key >> 28U,
                 .limit = limit_number(found.pair.key),
                 .decision = limit->apply(peek, t_state, now).outcome.decision};
  }
}

template <class Access>
bool BasicTable<Access>::forget(const Digest& key) noexcept {
  const Places places = places_of(key);
  bool was_there = false;
  while (true) {
    const Found found = find(places);
    if (found.at == nullptr) return was_there;
    was_there |= clear(found.at, found.pair);
  }
}

template <class Access>
template <class Drop>
std::size_t BasicTable<Access>::sweep(std::size_t first, std::size_t last, Now now,
                                      Drop&& drop) noexcept {
  std::size_t kept = 0;
  for (std::size_t i = first; i < std::min(last, memory_.slots.size()); ++i) {
    Pair* const at = &memory_.slots[i];
    const Pair pair = Access::load(at);
    if (pair.key == 0) continue;
    const auto limit = limit_number(pair.key);
    if (drop(limit) || expired(pair, now))
      (void)clear(at, pair);
    else
      ++kept;
  }
  return kept;
}

template <class Access>
void BasicTable<Access>::recount_passed() noexcept {
  std::fill(memory_.passed.begin(), memory_.passed.end(), std::uint8_t{0});
  for (std::size_t i = 0; i < memory_.slots.size(); ++i) {
    const Pair pair = Access::load(&memory_.slots[i]);
    const std::size_t choice = (pair.key & kChoiceMask) >> kChoiceShift;
    if (pair.key != 0 && choice > 0) raise_passed(places_from(i, pair.key), choice);
  }
}

template <class Access>
TableCounters BasicTable<Access>::counters() const noexcept {
  return {.inserted = inserted_.load(std::memory_order_relaxed),
          .evicted = evicted_.load(std::memory_order_relaxed),
          .untracked = untracked_.load(std::memory_order_relaxed),
          .forgiven = forgiven_.load(std::memory_order_relaxed),
          .refused_for_room = refused_for_room_.load(std::memory_order_relaxed),
          .failed_exchanges = failed_exchanges_.load(std::memory_order_relaxed)};
}

}  // namespace sluice::store
