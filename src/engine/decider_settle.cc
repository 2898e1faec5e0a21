// After the decision: charges of a request that does not count, or is over.
#include "engine/decider.h"

#include <algorithm>

namespace sluice::engine {

bool Decider::is_counted(const Plan& plan, const ResponseView& response) noexcept {
  if (!plan.rule->count) return true;
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

void Decider::give_back(Op::Held& held, Now now) noexcept {
  if (held.fate != Op::Fate::promised) store_.refund(held.check, held.holding, now);
}

void Decider::charge_promised(const Op::Held& held, Now now) noexcept {
  store::Check check = held.check;
  check.probe = false;
  store_.charge(check, now);
}

void Decider::leave_queue(Op& op) noexcept {
  if (op.queued_ != nullptr) op.queued_->held->fetch_sub(1, std::memory_order_relaxed);
  op.queued_ = nullptr;
}

void Decider::released(Op& op) noexcept { leave_queue(op); }

void Decider::abandon(Op& op, Now now) noexcept {
  if (op.stage_ == Op::Stage::waiting) store_.cancel(op.deciding_->call, now);
  release(op);
  leave_queue(op);
  if (op.late_shadows_ > 0) leave_shadows(op, Gone::abandoned);
  for (Op::Held& held : op.held_) give_back(held, now);
  end(op);
}

void Decider::responded(Op& op, const ResponseView& response, Now now) noexcept {
  if (op.late_shadows_ > 0) tell_shadows(op, response);
  std::size_t in_flight = 0;
  for (Op::Held& held : op.held_) {
    if (held.fate == Op::Fate::in_flight) {
      op.held_[in_flight++] = held;
      continue;
    }
    const bool counts = is_counted(*held.plan, response);
    if (held.fate == Op::Fate::promised) {
      if (counts) charge_promised(held, now);
    } else if (counts) {
      store_.keep(held.holding);
    } else {
      give_back(held, now);
    }
  }
  op.held_.shorten(in_flight);
}

void Decider::settle(Op& op, const ResponseView* response, Now now) noexcept {
  leave_queue(op);
  if (response != nullptr) responded(op, *response, now);
  if (op.late_shadows_ > 0) leave_shadows(op, Gone::over);
  for (Op::Held& held : op.held_) {
    switch (held.fate) {
      case Op::Fate::in_flight: give_back(held, now); break;
      case Op::Fate::stays: store_.keep(held.holding); break;
      // The result is unknown, and a client must not evade the charge by disconnecting.
      case Op::Fate::promised: charge_promised(held, now); break;
    }
  }
  end(op);
}

void Decider::renew(Op& op, Now now) noexcept {
  for (Op::Held& held : op.held_) {
    if (held.fate == Op::Fate::in_flight) store_.renew(held.check, held.holding, now);
  }
}

// A promised charge is made when the response arrives.
void Decider::correct_cost(Op& op, store::Cost actual, Now now) noexcept {
  for (Op::Held& held : op.held_) {
    if (held.fate == Op::Fate::promised) held.check.cost = actual;
    if (held.fate == Op::Fate::stays) store_.correct(held.check, held.holding, actual, now);
  }
}

}  // namespace sluice::engine
