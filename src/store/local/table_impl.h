// The table's members, for those who instantiate it: table.cc, and tests with an access of their
// own.
#pragma once

#include "store/local/table.h"
#include <sluice/int128.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace sluice::store {

// One per thread and kind of use: an update, and an insertion that has to make room for it.
inline thread_local StateBuffer t_state;

// ---- places
// --------------------------------------------------------------------------------------

template <class Access>
std::uint64_t BasicTable<Access>::fingerprint_of(const Digest& key) noexcept {
  const std::uint64_t tag = key.low & kTagMask;
  return (tag != 0 ? tag : kTagMask) >> 28U;  // 0 would be an empty slot
}

// From the fingerprint alone, so that a slot's other groups can be told from the slot. Never 0:
// with a number of groups that 2 and 3 do not divide, the four choices of a key then differ.
template <class Access>
std::size_t BasicTable<Access>::stride_of(std::uint64_t tag) const noexcept {
  const std::uint64_t mixed = tag * 0x9e3779b97f4a7c15ULL;
  return 1 + static_cast<std::size_t>(Uint128{mixed} * (groups() - 1) >> 64U);
}

template <class Access>
typename BasicTable<Access>::Places BasicTable<Access>::places_of(
    const Digest& key) const noexcept {
  const std::uint64_t tag = fingerprint_of(key) << 28U;
  return {.slots = memory_.slots.data(),
          .tag = tag,
          .line = (key.low & 1U) * kSlotsPerLine,
          .home = static_cast<std::size_t>(Uint128{key.high} * groups() >> 64U),
          .stride = stride_of(tag),
          .groups = groups()};
}

// The groups of a slot's key, told from where the slot is.
template <class Access>
typename BasicTable<Access>::Places BasicTable<Access>::places_from(
    std::size_t slot, std::uint64_t key) const noexcept {
  const std::uint64_t tag = key & kTagMask;
  const std::size_t stride = stride_of(tag);
  Places places{.slots = memory_.slots.data(),
                .tag = tag,
                .line = 0,
                .home = slot / kSlotsPerGroup,
                .stride = groups() - stride,  // backwards
                .groups = groups()};
  places.home = places.group((key & kChoiceMask) >> kChoiceShift);
  places.stride = stride;
  return places;
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

// ---- exchanges
// -----------------------------------------------------------------------------------

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

// ---- lookup
// --------------------------------------------------------------------------------------

template <class Access>
typename BasicTable<Access>::Found BasicTable<Access>::find(const Places& places) noexcept {
  for (std::size_t choice = 0; choice < kChoices; ++choice) {
    const std::size_t group = places.group(choice);
    const std::uint64_t tag = places.tag | std::uint64_t{choice} << kChoiceShift;
    for (std::size_t i = 0; i < kSlotsPerGroup; ++i) {
      Pair* const at = places.slots + group * kSlotsPerGroup + (i + places.line) % kSlotsPerGroup;
      if ((Access::load_key(at) & (kTagMask | kChoiceMask)) != tag) continue;
      const Pair pair = Access::load(at);
      if ((pair.key & (kTagMask | kChoiceMask)) != tag) continue;
      return {.at = at, .place = choice * kSlotsPerGroup + i, .pair = pair};
    }
    if (!passed(group)) break;
  }
  return {};
}

// The key's slot, after helping whoever is placing it.
template <class Access>
typename BasicTable<Access>::Found BasicTable<Access>::find_confirmed(const Places& places,
                                                                      Now now) noexcept {
  while (true) {
    const Found found = find(places);
    if ((found.pair.key & kTentative) == 0) [[likely]]
      return found;
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
      const Pair other = Access::load(at);
      if ((other.key & (kTagMask | kChoiceMask)) != tag) continue;
      const bool removable = (other.key & kTentative) != 0 && other_place > place;
      if (removable && clear(at, other)) continue;
      (void)clear(places.at(place), tentative);
      return false;
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

// ---- updates
// -------------------------------------------------------------------------------------

template <class Access>
Answer BasicTable<Access>::operate(const Check& check, const Operation& operation,
                                   Now now) noexcept {
  const Places places = places_of(check.key);
  while (true) {
    const Found found = find_confirmed(places, now);
    const std::optional<Answer> answer = found.at != nullptr
                                             ? try_update(found, check, operation, now)
                                             : try_insert(places, check, operation, now);
    if (answer) [[likely]]
      return *answer;
  }
}

template <class Access>
std::optional<Answer> BasicTable<Access>::try_update(const Found& found, const Check& check,
                                                     const Operation& operation, Now now) noexcept {
  const bool common = (found.pair.key & (kLimitMask | kWide)) == check.limit;
  if (common && operation.action == Action::decide) [[likely]] {
    const StoredLimit::WordStep step =
        limits_.find(check.limit)->step(found.pair.state, now, operation.cost);
    if (step.fits) [[likely]] {
      const Answer answer{.decision = step.outcome.decision,
                          .charge = {.limit = check.limit, .receipt = step.outcome.receipt}};
      if (step.word == found.pair.state) return answer;  // a peek or a refusal
      const Pair after{.key = found.pair.key, .state = step.word};
      if (exchange(found.at, found.pair, after)) [[likely]]
        return answer;
      return std::nullopt;
    }
  }
  return try_update_slowly(found, check, operation, now);
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

template <class Access>
std::optional<Answer> BasicTable<Access>::try_update_slowly(const Found& found, const Check& check,
                                                            const Operation& operation,
                                                            Now now) noexcept {
  StateBuffer& state = t_state;
  if (!load_state(found, state)) return std::nullopt;

  // Refunds and renewals go to the limit that the state belongs to, charges bring their own.
  const StoredLimit* writer = limit_of(found.pair);
  const bool refunds = operation.action == Action::refund || operation.action == Action::renew;
  LimitNumber number = static_cast<LimitNumber>(found.pair.key & kLimitMask);
  if (!refunds && number != check.limit) {
    const StoredLimit* const limit = limits_.find(check.limit);
    if (writer != nullptr) {
      limit->carry_over(*writer, state, now, check.change);
    } else {
      state.set(limit->idle(now));
    }
    writer = limit;
    number = check.limit;
  }
  if (writer == nullptr) return Answer{};

  const StoredLimit::Applied applied = writer->apply(operation, state, now);
  Answer answer{.decision = applied.outcome.decision,
                .charge = {.limit = number, .receipt = applied.outcome.receipt}};
  if (!applied.changed) return answer;
  const Debt debt = writer->debt(state, now);
  const std::uint64_t key = (found.pair.key & ~(kLimitMask | kWide)) | number;
  switch (publish(found.at, found.pair, key, state, *writer, debt, now)) {
    case Published::yes: return answer;
    case Published::interfered: return std::nullopt;
    case Published::no_room: break;
  }
  return without_room(check, *writer, answer, operation.cost, debt.lasts);
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

// ---- insertion
// -----------------------------------------------------------------------------------

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
    if ((pair.key & kTagMask) == 0 || expired(pair, now)) {
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
std::optional<Answer> BasicTable<Access>::try_insert(const Places& places, const Check& check,
                                                     const Operation& operation, Now now) noexcept {
  // What was never charged, or has been forgotten, cannot be given back.
  if (operation.action == Action::refund || operation.action == Action::renew) return Answer{};

  const StoredLimit& limit = *limits_.find(check.limit);
  StateBuffer& state = t_state;
  state.set(limit.idle(now));
  const StoredLimit::Applied applied = limit.apply(operation, state, now);
  const Answer answer{.decision = applied.outcome.decision,
                      .charge = {.limit = check.limit, .receipt = applied.outcome.receipt}};
  if (!applied.changed) return answer;  // nothing to remember

  const Debt debt = limit.debt(state, now);
  const Target target = choose_target(places, debt.share(), now);
  if (target.at == nullptr) {
    return without_room(check, limit, answer, debt.used, target.room_after);
  }

  const std::size_t choice = target.place / kSlotsPerGroup;
  const std::uint64_t key =
      places.tag | std::uint64_t{choice} << kChoiceShift | std::uint64_t{check.limit};
  const Pair tentative{.key = key | kTentative,
                       .state = ticket_.fetch_add(1, std::memory_order_relaxed)};
  raise_passed(places, choice);
  if (!exchange(target.at, target.found, tentative)) {
    lower_passed(places, choice);
    return std::nullopt;
  }
  vacated(target.at, target.found);
  if (target.forgiven > 0) {
    count(evicted_);
    count(forgiven_, target.forgiven);
  }
  if (!survives(places, target.place, tentative)) return std::nullopt;
  switch (publish(target.at, tentative, key, state, limit, debt, now)) {
    case Published::yes: count(inserted_); return answer;
    case Published::interfered: return std::nullopt;
    case Published::no_room: break;
  }
  (void)clear(target.at, tentative);
  return without_room(check, limit, answer, debt.used, debt.lasts);
}

template <class Access>
Answer BasicTable<Access>::without_room(const Check& check, const StoredLimit& limit,
                                        Answer admitted, std::uint64_t forgiven,
                                        Nanos room_after) noexcept {
  if (!admitted.decision.allowed()) return admitted;  // a denied request that was to be counted
  if (check.no_room == NoRoom::forgive) {
    count(untracked_);
    count(forgiven_, forgiven);
    admitted.charge = {};
    return admitted;
  }
  count(refused_for_room_);
  return {.decision = {.verdict = Verdict::refused,
                       .limit = core::capacity(limit.limit()),
                       .remaining = 0,
                       .reset_after = room_after,
                       .retry_after = room_after},
          .charge = {}};
}

// ---- decisions
// -----------------------------------------------------------------------------------

template <class Access>
Answer BasicTable<Access>::decide(const Check& check, Now now) noexcept {
  return operate(check, {.action = Action::decide, .cost = check.cost, .receipt = {}}, now);
}

template <class Access>
Answer BasicTable<Access>::force(const Check& check, Now now) noexcept {
  return operate(check, {.action = Action::charge, .cost = check.cost, .receipt = {}}, now);
}

template <class Access>
void BasicTable<Access>::refund(const Check& check, const Charge& charge, Now now) noexcept {
  if (charge.receipt.cost == 0) return;
  const Places places = places_of(check.key);
  const Operation operation{
      .action = Action::refund, .cost = check.cost, .receipt = charge.receipt};
  while (true) {
    const Found found = find_confirmed(places, now);
    if (found.at == nullptr) return;
    const StoredLimit* const holder = limit_of(found.pair);
    const StoredLimit* const issuer = limits_.find(charge.limit);
    if (holder == nullptr || issuer == nullptr) return;
    if (holder != issuer && !holder->honours(*issuer, check.change)) return;
    if (try_update_slowly(found, check, operation, now)) return;
  }
}

template <class Access>
Charge BasicTable<Access>::renew(const Check& check, const Charge& lease, Now now) noexcept {
  if (lease.receipt.cost == 0) return {};
  const Places places = places_of(check.key);
  const Operation operation{
      .action = Action::renew, .cost = lease.receipt.cost, .receipt = lease.receipt};
  while (true) {
    const Found found = find_confirmed(places, now);
    if (found.at == nullptr) return {};
    const StoredLimit* const holder = limit_of(found.pair);
    const StoredLimit* const issuer = limits_.find(lease.limit);
    if (holder == nullptr || issuer == nullptr) return {};
    if (holder != issuer && !holder->honours(*issuer, check.change)) return {};
    if (const auto answer = try_update_slowly(found, check, operation, now)) return answer->charge;
  }
}

template <class Access>
void BasicTable<Access>::decide_batch(std::span<const Check> checks, Now now,
                                      std::span<Answer> answers) noexcept {
  constexpr std::size_t kAhead = 16;
  for (std::size_t i = 0; i < std::min(kAhead, checks.size()); ++i) prefetch(checks[i].key);
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (i + kAhead < checks.size()) prefetch(checks[i + kAhead].key);
    answers[i] = decide(checks[i], now);
  }
}

template <class Access>
bool BasicTable<Access>::decide_all(std::span<const Check> checks, Now now,
                                    std::span<Answer> answers) noexcept {
  for (const Check& check : checks) prefetch(check.key);

  // Look. What is in a word already is prepared, so that charging it is one exchange.
  struct Prepared {
    Pair* at;
    Pair before;
    Pair after;
  };
  std::array<Prepared, kChecksMax> prepared;
  bool admitted = true;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Check& check = checks[i];
    prepared[i].at = nullptr;
    const Found found = find_confirmed(places_of(check.key), now);
    const StoredLimit& limit = *limits_.find(check.limit);
    if (found.at == nullptr || (found.pair.key & (kLimitMask | kWide)) == check.limit) {
      const std::uint64_t word = found.at != nullptr ? found.pair.state : limit.idle(now);
      const StoredLimit::WordStep step = limit.step(word, now, check.cost);
      if (step.fits) {
        answers[i] = {.decision = step.outcome.decision,
                      .charge = {.limit = check.limit, .receipt = step.outcome.receipt}};
        if (found.at != nullptr) {
          prepared[i] = {.at = found.at,
                         .before = found.pair,
                         .after = {.key = found.pair.key, .state = step.word}};
        }
        admitted &= step.outcome.decision.allowed();
        continue;
      }
    }
    answers[i] = would_answer(found, check, now);
    admitted &= answers[i].decision.allowed();
  }
  if (!admitted) {
    settle_refusal(checks, answers, now);
    return false;
  }

  // Charge; if one refuses after all, take back what was charged before it.
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Prepared& ready = prepared[i];
    if (ready.at != nullptr && exchange(ready.at, ready.before, ready.after)) continue;
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
Answer BasicTable<Access>::would_answer(const Found& found, const Check& check, Now now) noexcept {
  StateBuffer& state = t_state;
  const StoredLimit& limit = *limits_.find(check.limit);
  Found at = found;
  while (at.at != nullptr && !load_state(at, state)) {
    at = find_confirmed(places_of(check.key), now);
  }
  if (at.at == nullptr) {
    state.set(limit.idle(now));
  } else if ((at.pair.key & kLimitMask) != check.limit) {
    const StoredLimit* const writer = limit_of(at.pair);
    if (writer != nullptr)
      limit.carry_over(*writer, state, now, check.change);
    else
      state.set(limit.idle(now));
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

// ---- operators
// -----------------------------------------------------------------------------------

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
    if ((found.pair.key & kTagMask) == 0 || (found.pair.key & kTentative) != 0) return std::nullopt;
    const StoredLimit* const limit = limit_of(found.pair);
    if (limit == nullptr || expired(found.pair, now)) return std::nullopt;
    if (!load_state(found, t_state)) continue;
    const Operation peek{.action = Action::decide, .cost = 0, .receipt = {}};
    return Entry{.fingerprint = found.pair.key >> 28U,
                 .limit = static_cast<LimitNumber>(found.pair.key & kLimitMask),
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
    if ((pair.key & kTagMask) == 0) continue;
    const auto limit = static_cast<LimitNumber>(pair.key & kLimitMask);
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
    if ((pair.key & kTagMask) != 0 && choice > 0) raise_passed(places_from(i, pair.key), choice);
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
