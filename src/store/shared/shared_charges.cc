// Charges after the decision, what is given back, and what is settled: see shared_store.h.
#include "store/shared/share_key.h"
#include "store/shared/shared_store.h"

#include <algorithm>

namespace sluice::store {

// ---- what callers ask for -----------------------------------------------------------------------

void SharedStore::charge(const Check& check, Now now) noexcept {
  if (!is_shared(check.limit)) return local_.charge(check, now);
  now = latest(now);
  const SharedTerms* const terms = limits_.find(check.limit);
  if (terms == nullptr) return;
  if (terms->is_keyed && !breaker_of(check.group_key()).is_open()) {
    return holdings_.charge_for_good(check, check.cost, now);
  }
  // As for requests that the share admits.
  const LimitNumber share = terms->share.load(std::memory_order_acquire);
  if (share != SharedTerms::kNoShare) local_.charge(share_check(check, share), now);
  add_settlement(check, check.cost, now);
}

// Whether the node's share admitted it, so that the charge is the table's.
bool SharedStore::is_under_share(const Check& check, const Holding& holding) const noexcept {
  return is_shared(check.limit) && holding.ticket == 0 && holding.charge.receipt.cost > 0 &&
         !is_shared(holding.charge.limit);
}

void SharedStore::refund(const Check& check, Holding& holding, Now now) noexcept {
  if (!is_shared(check.limit)) return local_.refund(check, holding, now);
  now = latest(now);
  if (holding.ticket == 0 && !is_shared(holding.charge.limit) &&
      !refund_late(check, holding, now)) {
    // What was settled meanwhile stays charged at the authority.
    (void)settlements_.take_back(check, holding.cost);
  }
  if (is_under_share(check, holding)) {
    return local_.refund(share_check(check, holding.charge.limit), holding, now);
  }
  denied_.forget(check.group_key());
  holdings_.refund(check, holding, now);
}

void SharedStore::correct(const Check& check, Holding& holding, Cost cost, Now now) noexcept {
  if (!is_shared(check.limit)) return local_.correct(check, holding, cost, now);
  now = latest(now);
  if (is_under_share(check, holding)) {
    const Cost before = holding.cost;
    local_.correct(share_check(check, holding.charge.limit), holding, cost, now);
    if (holding.cost > before) add_settlement(check, holding.cost - before, now);
    if (holding.cost < before) (void)settlements_.take_back(check, before - holding.cost);
    return;
  }
  denied_.forget(check.group_key());
  holdings_.correct(check, holding, cost, now);
}

void SharedStore::renew(const Check& check, Holding& slot, Now now) noexcept {
  if (!is_shared(check.limit)) return local_.renew(check, slot, now);
  now = latest(now);
  if (is_under_share(check, slot)) {
    return local_.renew(share_check(check, slot.charge.limit), slot, now);
  }
  holdings_.renew(check, slot, now);
}

// ---- what is given back -------------------------------------------------------------------------

// A group that was charged, of a request that is not admitted.
void SharedStore::give_back(Call& call, const Group& group, Now now) noexcept {
  const auto checks = checks_of(call, group);
  const auto answers = answers_of(call, group);
  if (group.source == Source::exact) {
    give_back_to_authority(checks, answers, now);
  } else {
    for (std::size_t i = 0; i < checks.size(); ++i) {
      Holding held = holding(answers[i].charge, answers[i].charge.receipt.cost);
      refund(checks[i], held, now);
    }
  }
  add_costs_back(checks, answers);
}

void SharedStore::give_back_to_authority(std::span<const Check> checks,
                                         std::span<const Answer> answers, Now now) noexcept {
  std::array<AuthorityRefund, kCallChecksMax> refunds;
  std::size_t count = 0;
  Nanos lasts{0};
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Charge& charge = answers[i].charge;
    const SharedTerms* const terms = limits_.find(checks[i].limit);
    if (charge.receipt.cost == 0 || terms == nullptr) continue;
    refunds[count++] = {.salt = checks[i].salt, .charge = charge, .amount = charge.receipt.cost};
    lasts = std::max(lasts, terms->limit->usage_lasts);
  }
  if (count == 0) return;
  ++shared_counts_.given_back;
  const Digest key = checks[0].group_key();
  denied_.forget(key);
  const bool sent = authority_.refund(key, std::span{refunds}.first(count), now.mono + lasts, now);
  if (!sent) ++shared_counts_.refunds_dropped;
}

// What a share has admitted while the authority was asked about it, too. False: not, or too long
// ago.
bool SharedStore::refund_late(const Check& check, const Holding& holding, Now now) noexcept {
  const Index place = asked_.find(static_cast<std::uint64_t>(holding.charge.edition));
  if (place == 0) return false;
  Asked& asked = asked_[place];
  for (std::size_t i = 0; i < asked.checks.size(); ++i) {
    const std::uint32_t bit = 1U << i;
    const bool is_it = asked.checks[i].key == check.key && asked.checks[i].limit == check.limit;
    if (!is_it || (asked.refunded & bit) != 0) continue;
    asked.refunded |= bit;
    const Answer charged{.decision = {}, .charge = asked.is_kept ? asked.charges[i] : Charge{}};
    give_back_to_authority({&asked.checks[i], 1}, {&charged, 1}, now);
    return true;
  }
  return false;
}

// ---- what is settled ----------------------------------------------------------------------------

// A probe charges nothing, and a slot is given back when its request ends: neither is settled. Nor
// is what has no key at the authority.
void SharedStore::add_settlement(const Check& check, Cost cost, Now now) noexcept {
  const SharedTerms* const terms = limits_.find(check.limit);
  if (check.probe || cost == 0 || terms == nullptr || !terms->is_keyed) return;
  if (terms->limit->limit.algorithm == Algorithm::concurrency) return;
  if (!settlements_.add(check, cost, now.mono)) shared_counts_.settlements_dropped += cost;
}

// A few at once, while the authority takes them; a shard whose breaker is open gets one now and
// then, as a probe.
void SharedStore::settle(Now now) noexcept {
  constexpr std::size_t kAtOnce = 32;
  for (std::size_t left = settlements_.size(); left > 0 && settling_ < kAtOnce; --left) {
    const Settlements::Entry* const next = settlements_.next();
    if (next == nullptr) return;
    Breaker& breaker = breaker_of(next->check.group_key());
    if (breaker.is_open() && !breaker.take_probe(now, random_)) {
      settlements_.skip();
    } else if (!settle_next(now)) {
      return;
    }
  }
}

// False: the authority takes no more.
bool SharedStore::settle_next(Now now) noexcept {
  const Settlements::Entry entry = *settlements_.take();
  const SharedTerms* const terms = limits_.find(entry.check.limit);
  if (terms == nullptr) {
    shared_counts_.settlements_dropped += entry.spent;
    return true;
  }
  if (now.mono - entry.last > terms->limit->usage_lasts) {
    shared_counts_.settlements_expired += entry.spent;
    return true;
  }
  // More than the capacity cannot count.
  const auto cost = static_cast<Cost>(std::min<std::uint64_t>(entry.spent, terms->limit->capacity));
  const AuthorityCheck check{.limit = terms->limit.get(),
                             .salt = entry.check.salt,
                             .cost = cost,
                             .change = entry.check.change};
  const Digest key = entry.check.group_key();
  if (!authority_.charge(kSettleTickets | authority_.shard_of(key), key, check,
                         Authority::Reason::outage, now)) {
    if (!settlements_.add(entry.check, cost, entry.last))
      shared_counts_.settlements_dropped += cost;
    return false;
  }
  ++settling_;
  shared_counts_.settled += entry.spent;
  return true;
}

}  // namespace sluice::store
