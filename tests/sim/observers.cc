#include "sim/observers.h"

#include <algorithm>
#include <utility>

namespace sluice::sim {

using store::AuthorityTicket;
using store::Completion;

// ---- the store ----------------------------------------------------------------------------------

Completion ObservedStore::decide_all(store::Call& call, Now now) noexcept {
  const auto is_shared = [](const store::Check& check) { return store::is_shared(check.limit); };
  if (is_blind_ || std::ranges::none_of(call.asked(), is_shared)) {
    return inner_.decide_all(call, now);
  }
  const std::uint32_t record = node_.ledger.called(node_.id, call, node_.limits, node_.now());
  Waiting& waiting = waiting_[&call];
  waiting = {.store = this, .record = record, .completed = call.completed, .owner = call.owner};
  call.owner = &waiting;
  call.completed = &ObservedStore::later;
  const Completion completion = inner_.decide_all(call, now);
  node_.ledger.asking_done();
  if (completion == Completion::later) return completion;
  const Waiting done = waiting;
  waiting_.erase(&call);
  call.owner = done.owner;
  call.completed = done.completed;
  node_.ledger.completed(record, call, node_.now(), MonoTime::max());
  return completion;
}

void ObservedStore::later(store::Call& call) noexcept {
  const Waiting done = *static_cast<Waiting*>(call.owner);
  ObservedStore& self = *done.store;
  self.waiting_.erase(&call);
  call.owner = done.owner;
  call.completed = done.completed;
  if (!self.is_blind_) {
    self.node_.ledger.resume(done.record);
    // A pause stops the node's timers. They are as exact as its drift is steady.
    constexpr Nanos kTimer = std::chrono::microseconds{100};
    const MonoTime due = self.node_.ledger.asked_at(done.record) + self.node_.budget;
    self.node_.ledger.completed(done.record, call, self.node_.now(),
                                std::max(due, self.node_.resumed()) + kTimer);
  }
  if (call.completed != nullptr) call.completed(call);
}

void ObservedStore::cancel(store::Call& call, Now now) noexcept {
  const auto found = waiting_.find(&call);
  if (found != waiting_.end()) {
    if (!is_blind_) node_.ledger.cancelled(found->second.record);
    call.owner = found->second.owner;
    call.completed = found->second.completed;
    waiting_.erase(found);
  }
  inner_.cancel(call, now);
}

void ObservedStore::charge(const store::Check& check, Now now) noexcept {
  if (!is_blind_ && store::is_shared(check.limit)) node_.ledger.charged(node_.id, check);
  inner_.charge(check, now);
}

void ObservedStore::refund(const store::Check& check, store::Holding& holding, Now now) noexcept {
  if (!is_blind_ && store::is_shared(check.limit)) {
    node_.ledger.refunded(node_.id, check, holding);
  }
  inner_.refund(check, holding, now);
}

void ObservedStore::correct(const store::Check& check, store::Holding& holding, store::Cost cost,
                            Now now) noexcept {
  if (!is_blind_ && store::is_shared(check.limit)) {
    node_.ledger.corrected(node_.id, check, holding, cost);
  }
  inner_.correct(check, holding, cost, now);
}

void ObservedStore::renew(const store::Check& check, store::Holding& slot, Now now) noexcept {
  if (!is_blind_ && store::is_shared(check.limit)) node_.ledger.renewed(node_.id, check);
  inner_.renew(check, slot, now);
}

// ---- the authority ------------------------------------------------------------------------------

bool ObservedAuthority::decide(AuthorityTicket ticket, const Digest& key,
                               std::span<const store::AuthorityCheck> checks, Now now) noexcept {
  if (is_blind_) return inner_.decide(ticket, key, checks, now);
  const std::uint32_t ask = ledger_.asked(node_, key, checks);
  if (!inner_.decide(ticket, key, checks, now)) {
    ledger_.not_asked(ask);
    return false;
  }
  if (!asks_.emplace(ticket, ask).second) ledger_.violated("I10", "a ticket is in use twice");
  return true;
}

bool ObservedAuthority::charge(AuthorityTicket ticket, const Digest& key,
                               const store::AuthorityCheck& check, Reason reason,
                               Now now) noexcept {
  const bool sent = inner_.charge(ticket, key, check, reason, now);
  if (sent && !is_blind_) ledger_.charge_sent(node_, key, check, reason);
  return sent;
}

bool ObservedAuthority::refund(const Digest& key, std::span<const store::AuthorityRefund> refunds,
                               MonoTime until, Now now) noexcept {
  const bool sent = inner_.refund(key, refunds, until, now);
  if (sent && !is_blind_) ledger_.refund_sent(node_, key, refunds);
  return sent;
}

bool ObservedAuthority::renew(AuthorityTicket ticket, const Digest& key,
                              std::span<const store::AuthorityRefund> slots, MonoTime until,
                              Now now) noexcept {
  return inner_.renew(ticket, key, slots, until, now);
}

void ObservedAuthority::advance(Now now, store::AuthorityListener& listener) noexcept {
  listener_ = &listener;
  inner_.advance(now, *this);
  listener_ = nullptr;
}

void ObservedAuthority::replied(AuthorityTicket ticket, store::AuthorityOutcome outcome,
                                std::span<store::Answer> answers, Now now) noexcept {
  // Tickets of decisions; of other calls some names are not unique.
  constexpr AuthorityTicket kOthers = AuthorityTicket{3} << 16U;
  if (!is_blind_ && (ticket & kOthers) == 0) {
    const auto found = asks_.find(ticket);
    if (found == asks_.end()) {
      ledger_.violated("I10", "a reply that nobody waits for");
    } else {
      ledger_.replied(found->second, outcome, answers, execution_());
      asks_.erase(found);
    }
  }
  listener_->replied(ticket, outcome, answers, now);
}

}  // namespace sluice::sim
