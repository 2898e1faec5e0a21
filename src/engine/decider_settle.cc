// After the decision: charges of a request that does not count, or is over.
#include "engine/decider.h"

#include <algorithm>

namespace sluice::engine {
namespace {

bool counts(const Plan& plan, const ResponseView& response) noexcept {
  const rules::Count& count = *plan.rule->count;
  const auto in = [&](const auto& range) {
    return response.status >= range.first && response.status <= range.second;
  };
  if (std::ranges::any_of(count.statuses, in)) return true;
  if (response.grpc_status &&
      std::ranges::find(count.grpc_statuses, *response.grpc_status) != count.grpc_statuses.end()) {
    return true;
  }
  if (!plan.count_header) return false;
  const auto has_it = [&](const HeaderView& header) {
    return equals_ignoring_case(header.name, count.header->name) &&
           plan.count_header->matches(header.value);
  };
  return std::ranges::any_of(response.headers, has_it);
}

}  // namespace

void Decider::give_back(const Op::Held& held, Now now) noexcept {
  if (held.fate != Op::Fate::promised) held.by->refund(held.check, held.charge, now);
}

void Decider::charge_promised(const Op::Held& held, Now now) noexcept {
  store::Check check = held.check;
  check.probe = false;
  (void)held.by->charge(check, now);  // for good
}

void Decider::leave_queue(Op& op) noexcept {
  if (op.queued_ != nullptr) op.queued_->held->fetch_sub(1, std::memory_order_relaxed);
  op.queued_ = nullptr;
}

void Decider::released(Op& op) noexcept { leave_queue(op); }

void Decider::abandon(Op& op, Now now) noexcept {
  if (op.stage_ == Op::Stage::waiting) store_.cancel(op.call_);
  leave_queue(op);
  for (std::size_t i = 0; i < op.held_count_; ++i) give_back(op.held_[i], now);
  end(op);
}

void Decider::responded(Op& op, const ResponseView& response, Now now) noexcept {
  std::size_t in_flight = 0;
  for (std::size_t i = 0; i < op.held_count_; ++i) {
    const Op::Held& held = op.held_[i];
    if (held.fate == Op::Fate::in_flight) {
      op.held_[in_flight++] = held;
      continue;
    }
    const bool is_counted = !held.plan->rule->count || counts(*held.plan, response);
    if (held.fate == Op::Fate::stays && !is_counted) give_back(held, now);
    if (held.fate != Op::Fate::promised || !is_counted) continue;
    charge_promised(held, now);
  }
  op.held_count_ = in_flight;
}

void Decider::settle(Op& op, const ResponseView* response, Now now) noexcept {
  leave_queue(op);
  if (response != nullptr) responded(op, *response, now);
  for (std::size_t i = 0; i < op.held_count_; ++i) {
    const Op::Held& held = op.held_[i];
    if (held.fate == Op::Fate::in_flight) give_back(held, now);
    // The result is unknown, and a client must not evade the charge by disconnecting.
    if (held.fate == Op::Fate::promised) charge_promised(held, now);
  }
  end(op);
}

void Decider::renew(Op& op, Now now) noexcept {
  for (std::size_t i = 0; i < op.held_count_; ++i) {
    Op::Held& held = op.held_[i];
    if (held.fate == Op::Fate::in_flight) {
      held.charge = held.by->renew(held.check, held.charge, now);
    }
  }
}

// ---- late costs --------------------------------------------------------------------------------

void Decider::correct_cost(Op& op, store::Cost actual, Now now) noexcept {
  const std::size_t decided = op.held_count_;  // corrections are appended
  for (std::size_t i = 0; i < decided; ++i) {
    Op::Held& held = op.held_[i];
    if (held.fate == Op::Fate::in_flight || held.corrects) continue;
    if (held.fate == Op::Fate::promised) {
      held.check.cost = actual;
    } else {
      correct(op, i, actual, now);
    }
  }
}

// A higher cost is charged although it can no longer be rejected; a lower one is refunded. `held_`
// has all charges at any time, and no receipt covers more: so a response that does not count
// refunds all of them, and nothing of other requests. The oldest charge goes first: a bucket that
// refunds an older one still knows exactly where the younger ones are, but not vice versa.
void Decider::correct(Op& op, std::size_t place, store::Cost actual, Now now) noexcept {
  const auto is_of_it = [&](std::size_t i) {
    return i == place || (op.held_[i].corrects && op.held_[i].limit == op.held_[place].limit);
  };
  std::uint64_t charged = 0;
  for (std::size_t i = place; i < op.held_count_; ++i) {
    if (is_of_it(i)) charged += op.held_[i].check.cost;
  }
  if (actual > charged) {
    charge_more(op, place, static_cast<store::Cost>(actual - charged), now);
    return;
  }
  std::uint64_t excess = charged - actual;
  for (std::size_t i = place; i < op.held_count_ && excess > 0; ++i) {
    if (!is_of_it(i)) continue;
    Op::Held& held = op.held_[i];
    store::Check part = held.check;
    part.cost = static_cast<store::Cost>(std::min<std::uint64_t>(excess, held.charge.receipt.cost));
    if (part.cost == 0) continue;
    held.by->refund(part, held.charge, now);
    held.charge.receipt.cost -= part.cost;
    held.check.cost -= part.cost;
    excess -= part.cost;
  }
}

// A separate charge, with its own receipt. An exceeded limit takes less than requested.
void Decider::charge_more(Op& op, std::size_t place, store::Cost cost, Now now) noexcept {
  Op::Held more = op.held_[place];
  more.check.cost = cost;
  more.charge = more.by->charge(more.check, now);
  more.check.cost = more.charge.receipt.cost;
  more.corrects = true;
  const auto used = std::span{op.held_}.first(op.held_count_);
  const auto place_of_old = std::ranges::find_if(used, [&](const Op::Held& held) {
    return held.corrects && held.limit == more.limit && held.check.cost == 0;
  });
  if (place_of_old != used.end()) {
    *place_of_old = more;
  } else if (op.held_count_ < op.held_.size()) {
    op.held_[op.held_count_++] = more;
  } else {
    op.held_[place].check.cost += more.check.cost;  // it stays: there is no room for its receipt
    if (more.check.cost > 0) ++counters_.charges_unrefundable;
  }
}

}  // namespace sluice::engine
