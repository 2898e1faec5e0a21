#include "store/shared/shared_holdings.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::store {
namespace {

constexpr Cost kAll = UINT32_MAX;

AuthorityCheck asked_of(const Check& check, const SharedTerms& terms, Cost cost) noexcept {
  return {.limit = terms.limit.get(), .salt = check.salt, .cost = cost, .change = check.change};
}

// Whether `later` became a part of `charge`.
bool join(const SharedTerms* terms, Charge& charge, const Charge& later) noexcept {
  if (terms == nullptr || charge.receipt.cost == 0 || charge.limit != later.limit) return false;
  const auto joined = terms->limit->joined(charge, later);
  if (joined) charge = *joined;
  return joined.has_value();
}

}  // namespace

SharedHoldings::SharedHoldings(const SharedLimits& limits, Authority& authority,
                               std::size_t records, AuthorityTicket ticket_bits,
                               StoreCounts& counts, SharedCounts& shared_counts)
    : limits_(limits),
      authority_(authority),
      records_(records),
      ticket_bits_(ticket_bits),
      counts_(counts),
      shared_counts_(shared_counts) {}

// The record, if its reply is not in, or if its charges are too many for a holding. If not, the
// holding is the caller's again.
SharedHoldings::Record* SharedHoldings::staying(Holding& holding) noexcept {
  const std::uint32_t index = holding.ticket;
  if (index == 0) return nullptr;
  Record& record = records_[index];
  if (record.awaited != Awaited::nothing || record.further[0].receipt.cost > 0) return &record;
  holding = record.held;
  records_.release(index);
  return nullptr;
}

// The charges that a refund can find, the oldest first: a bucket that refunds an older one still
// knows exactly where the younger ones are, but not vice versa.
std::array<Charge*, 4> SharedHoldings::parts_of(Record& record) noexcept {
  return {&record.held.charge, &record.held.more, &record.further[0], &record.further[1]};
}

std::uint32_t SharedHoldings::record_for(const Check& check, Holding& holding) noexcept {
  const std::uint32_t index = records_.take();
  if (index == 0) return 0;
  records_[index] = {};
  records_[index].held = holding;
  records_[index].check = check;
  holding = {};
  holding.ticket = index;
  return index;
}

// ---- what callers ask for -----------------------------------------------------------------------

void SharedHoldings::refund(const Check& check, Holding& holding, Now now) noexcept {
  ++counts_.refunds;
  if (Record* const record = staying(holding)) {
    record->refunds = record->is_dropped = true;
    go_on(holding.ticket, now);
  } else {
    const std::array<Charge*, 2> parts{&holding.charge, &holding.more};
    (void)give_back(check, parts, kAll, now);
  }
  holding = {};
}

void SharedHoldings::correct(const Check& check, Holding& holding, Cost cost, Now now) noexcept {
  if (Record* const record = staying(holding)) {
    const Cost before = record->corrects ? record->target : record->held.cost + record->added;
    if (cost != before) ++(cost > before ? counts_.charges : counts_.refunds);
    record->corrects = true;
    record->target = cost;
    return go_on(holding.ticket, now);
  }
  if (cost == holding.cost) return;
  if (cost < holding.cost) {
    ++counts_.refunds;
    const std::array<Charge*, 2> parts{&holding.charge, &holding.more};
    holding.cost -= give_back(check, parts, holding.cost - cost, now);
    return;
  }
  const Cost added = cost - holding.cost;
  const std::uint32_t index = record_for(check, holding);
  if (index != 0) {
    ++counts_.charges;
    return raise(index, added, now);
  }
  ++shared_counts_.holdings_full;
  ++counts_.charges_unrefundable;
  holding.cost += added;
  charge_for_good(check, added, now);
}

void SharedHoldings::renew(const Check& check, Holding& slot, Now now) noexcept {
  ++counts_.renewals;
  bool mark_is_lost = false;
  if (slot.ticket != 0) mark_is_lost = records_[slot.ticket].mark_is_lost;
  if (Record* const record = staying(slot)) {
    record->renews = record->awaited != Awaited::renewal;
    return go_on(slot.ticket, now);
  }
  if (slot.cost == 0) return;  // it has lapsed
  const std::uint32_t index = record_for(check, slot);
  if (index == 0) {
    ++shared_counts_.holdings_full;
    return;
  }
  records_[index].mark_is_lost = mark_is_lost;
  renew_record(index, now);
}

void SharedHoldings::keep(Holding& holding) noexcept {
  if (Record* const record = staying(holding)) {
    record->is_dropped = true;
    if (record->awaited == Awaited::nothing) records_.release(holding.ticket);
  }
  holding = {};
}

// ---- calls to the authority ---------------------------------------------------------------------

// As much of `cost` as these charges cover; says how much that is.
Cost SharedHoldings::give_back(const Check& check, std::span<Charge* const> parts, Cost cost,
                               Now now) noexcept {
  std::array<AuthorityRefund, 4> refunds;
  std::size_t count = 0;
  Cost given = 0;
  for (Charge* const charge : parts) {
    const Cost part = std::min(cost - given, charge->receipt.cost);
    if (part == 0) continue;
    refunds[count++] = {.salt = check.salt, .charge = *charge, .amount = part};
    charge->receipt.cost -= part;
    given += part;
  }
  const SharedTerms* const terms = limits_.find(check.limit);
  if (count == 0 || terms == nullptr) return given;
  const bool sent = authority_.refund(check.group_key(), std::span{refunds}.first(count),
                                      now.mono + terms->limit->usage_lasts, now);
  if (!sent) ++shared_counts_.refunds_dropped;
  return given;
}

void SharedHoldings::charge_for_good(const Check& check, Cost cost, Now now) noexcept {
  const SharedTerms* const terms = limits_.find(check.limit);
  ++counts_.charges;
  const bool sent =
      terms != nullptr && authority_.charge(0, check.group_key(), asked_of(check, *terms, cost),
                                            Authority::Reason::charge, now);
  if (!sent) shared_counts_.charges_dropped += cost;
}

void SharedHoldings::raise(std::uint32_t index, Cost cost, Now now) noexcept {
  Record& record = records_[index];
  const SharedTerms* const terms = limits_.find(record.check.limit);
  const bool sent =
      terms != nullptr &&
      authority_.charge(records_.name_of(index) | ticket_bits_, record.check.group_key(),
                        asked_of(record.check, *terms, cost), Authority::Reason::charge, now);
  if (!sent) {
    shared_counts_.charges_dropped += cost;
    return;
  }
  record.added = cost;
  record.awaited = Awaited::charge;
}

// A slot whose place is not known cannot be moved. It lapses by itself, and another one is taken
// for it.
void SharedHoldings::renew_record(std::uint32_t index, Now now) noexcept {
  Record& record = records_[index];
  if (record.mark_is_lost) {
    const Cost slots = record.held.cost;
    record.held = {};
    record.mark_is_lost = false;
    return raise(index, slots, now);
  }
  std::array<AuthorityRefund, 4> slots;
  std::size_t count = 0;
  for (const Charge* const charge : parts_of(record)) {
    if (charge->receipt.cost == 0) continue;
    slots[count++] = {.salt = record.check.salt, .charge = *charge, .amount = charge->receipt.cost};
  }
  const SharedTerms* const terms = limits_.find(record.check.limit);
  if (count == 0 || terms == nullptr) return;
  const bool sent =
      authority_.renew(records_.name_of(index) | ticket_bits_, record.check.group_key(),
                       std::span{slots}.first(count), now.mono + terms->limit->usage_lasts, now);
  if (sent) record.awaited = Awaited::renewal;
  if (!sent) ++shared_counts_.holdings_full;
}

// ---- replies ------------------------------------------------------------------------------------

void SharedHoldings::replied(AuthorityTicket ticket, AuthorityOutcome outcome,
                             std::span<const Answer> answers, Now now) noexcept {
  const std::uint32_t index = records_.find(ticket & ~ticket_bits_);
  if (index == 0) return;
  Record& record = records_[index];
  const Awaited awaited = record.awaited;
  record.awaited = Awaited::nothing;
  const Cost added = std::exchange(record.added, 0);
  if (awaited == Awaited::charge) charged(record, added, outcome, answers);
  if (awaited == Awaited::renewal) renewed(record, outcome, answers);
  go_on(index, now);
}

void SharedHoldings::charged(Record& record, Cost added, AuthorityOutcome outcome,
                             std::span<const Answer> answers) noexcept {
  Holding& held = record.held;
  if (outcome == AuthorityOutcome::failed) return;  // counted by the authority
  if (outcome != AuthorityOutcome::done) {
    // Charged, but no refund will find it.
    held.cost += added;
    ++shared_counts_.marks_lost;
    ++counts_.charges_unrefundable;
    return;
  }
  Charge charge = answers[0].charge;
  charge.limit = record.check.limit;
  held.cost += charge.receipt.cost;
  if (charge.receipt.cost == 0) return;
  const SharedTerms* const terms = limits_.find(charge.limit);
  const auto parts = parts_of(record);
  for (Charge* const part : parts) {
    if (join(terms, *part, charge)) return;
  }
  const auto place =
      std::ranges::find_if(parts, [](const Charge* part) { return part->receipt.cost == 0; });
  if (place == parts.end()) {
    ++counts_.charges_unrefundable;
  } else {
    **place = charge;
  }
}

void SharedHoldings::renewed(Record& record, AuthorityOutcome outcome,
                             std::span<const Answer> answers) noexcept {
  Holding& held = record.held;
  if (outcome == AuthorityOutcome::failed) return;  // the slot may live; the next renewal tells
  if (outcome != AuthorityOutcome::done) {
    ++shared_counts_.marks_lost;
    record.mark_is_lost = true;
    for (Charge* const part : parts_of(record)) *part = {};
    return;
  }
  std::size_t i = 0;
  held.cost = 0;
  for (Charge* const charge : parts_of(record)) {
    if (charge->receipt.cost == 0) continue;
    *charge = answers[i++].charge;
    charge->limit = record.check.limit;
    held.cost += charge->receipt.cost;
  }
}

// What was asked for, once nothing is awaited.
void SharedHoldings::go_on(std::uint32_t index, Now now) noexcept {
  Record& record = records_[index];
  if (record.awaited != Awaited::nothing) return;
  const auto parts = parts_of(record);
  if (record.refunds) {
    (void)give_back(record.check, parts, kAll, now);
    return records_.release(index);
  }
  if (record.corrects) {
    record.corrects = false;
    Cost& cost = record.held.cost;
    if (record.target < cost) cost -= give_back(record.check, parts, cost - record.target, now);
    if (record.target > cost) raise(index, record.target - cost, now);
  }
  if (record.renews && !record.is_dropped && record.awaited == Awaited::nothing) {
    record.renews = false;
    renew_record(index, now);
  }
  if (record.is_dropped && record.awaited == Awaited::nothing) records_.release(index);
}

}  // namespace sluice::store
