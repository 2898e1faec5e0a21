// The table's members, for files that instantiate it: table.cc, and tests with an access of their
// own. Two other files find and change slots; this one has the public operations.
#pragma once

#include "store/local/table_change_impl.h"
#include "store/local/table_find_impl.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace sluice::store {

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

// An operation on an earlier charge, if the key's state still has it.
template <class Access>
Charge BasicTable<Access>::redeem(const Check& check, const Charge& charge, Operation operation,
                                  Now now) noexcept {
  operation.receipt = charge.receipt;
  if (charge.receipt.cost == 0) return {};
  if (ApproximateCells::issued(charge.receipt)) {
    if (operation.action == Action::refund) refund_in_cells(check, charge, now);
    return {};
  }
  const Places places = places_of(check.key);
  while (true) {
    const Found found = find_confirmed(places, check, now);
    if (found.at == nullptr) {
      if (operation.action == Action::refund) miss_refund(check, charge, now);
      return {};
    }
    const StoredLimit* const holder = limit_of(found.pair);
    const StoredLimit* const issuer = limits_.find(charge.limit);
    if (holder == nullptr || issuer == nullptr) return {};
    if (holder != issuer && !holder->honours(*issuer, check.change)) return {};
    Answer answer;
    if (try_update_slowly(found, check, operation, now, answer)) return answer.charge;
  }
}

// The slot of a charge has gone. If the key gave it up for its own cell, the charge may be there,
// and stays; evicted, it is forgiven.
template <class Access>
void BasicTable<Access>::miss_refund(const Check& check, const Charge& charge, Now now) noexcept {
  const StoredLimit* const issuer = limits_.find(charge.limit);
  if (issuer == nullptr) return;
  const Cost kept = cells_.own_usage(check.key, issuer->cell_meter(), now).units;
  if (kept > 0) count(refunds_lost_, std::min({check.cost, charge.receipt.cost, kept}));
}

// A slot that the key got since then began with the usage in its own cell, this charge included,
// and keeps it.
template <class Access>
void BasicTable<Access>::refund_in_cells(const Check& check, const Charge& charge,
                                         Now now) noexcept {
  const StoredLimit* const issuer = limits_.find(charge.limit);
  if (issuer == nullptr) return;
  const ApproximateCells::Refunded refunded =
      cells_.refund(check.key, issuer->cell_meter(), charge.receipt, check.cost, now);
  const bool moved = ApproximateCells::issued_by_own(charge.receipt) &&
                     find_confirmed(places_of(check.key), check, now).at != nullptr;
  count(refunds_lost_, moved ? refunded.held : refunded.lost);
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

  // Look. States in a word are prepared, so that charging them is one exchange.
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
    if (check.probe) answer.charge = {};
    admitted &= answer.decision.allowed();
  }
  if (!admitted) {
    settle_refusal(checks, answers, now);
    return false;
  }

  // Charge. If one rejects after all, refund the charges before it.
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (checks[i].probe) continue;
    if (prepared[i].at != nullptr && carry_out(prepared[i])) continue;
    if (checks[i].cost == 0) continue;
    answers[i] = decide(checks[i], now);
    if (answers[i].decision.allowed()) continue;
    for (std::size_t j = 0; j < i; ++j) {
      if (!checks[j].probe) refund(checks[j], answers[j].charge, now);
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
  const Places places = places_of(check.key);
  Found found;
  do {
    found = find_confirmed(places, check, now);
  } while (found.at != nullptr && !load_state(found, state));
  if (found.at == nullptr) {
    const ApproximateCells::Usage carried = carried_for(check, limit, now);
    Answer answer;
    if (decided_by_cells(places, carried, check, limit, now, answer)) return answer;
    begin_with(carried, limit, state, now);
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

// Limits that reject may have a state to write all the same: rejected requests that count, a clock
// that was set back. The other limits answer without this request.
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
      refund(checks[i], again.charge, now);  // another thread made room in between
    } else {
      answers[i] = again;
    }
  }
}

// ---- operators --------------------------------------------------------------------------------

template <class Access>
std::optional<typename BasicTable<Access>::Entry> BasicTable<Access>::read(const Digest& key,
                                                                           Now now) noexcept {
  const Found found = find_confirmed(places_of(key), {.key = key}, now);
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
  cells_.forget(key);
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
          .approximated = approximated_.load(std::memory_order_relaxed),
          .untracked = untracked_.load(std::memory_order_relaxed),
          .forgiven = forgiven_.load(std::memory_order_relaxed),
          .rejected_for_room = rejected_for_room_.load(std::memory_order_relaxed),
          .refunds_lost = refunds_lost_.load(std::memory_order_relaxed),
          .failed_exchanges = failed_exchanges_.load(std::memory_order_relaxed)};
}

}  // namespace sluice::store
