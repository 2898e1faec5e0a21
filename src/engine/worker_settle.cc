// After the decision: what was charged for a request that did not count, or is over.
#include "engine/worker.h"

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

void Worker::give_back(const Op::Held& held, Now now) noexcept {
  if (held.fate != Op::Fate::promised) held.by->refund(held.check, held.charge, now);
}

void Worker::charge_promised(const Op::Held& held, Now now) noexcept {
  store::Check check = held.check;
  check.probe = false;
  held.by->charge(check, now);
}

void Worker::leave_queue(Op& op) noexcept {
  if (op.queued_ != nullptr) op.queued_->held->fetch_sub(1, std::memory_order_relaxed);
  op.queued_ = nullptr;
}

void Worker::released(Op& op) noexcept { leave_queue(op); }

void Worker::abandon(Op& op, Now now) noexcept {
  if (op.stage_ == Op::Stage::waiting) store_.cancel(op.call_);
  leave_queue(op);
  for (std::size_t i = 0; i < op.held_count_; ++i) give_back(op.held_[i], now);
  end(op);
}

void Worker::responded(Op& op, const ResponseView& response, Now now) noexcept {
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

void Worker::settle(Op& op, const ResponseView* response, Now now) noexcept {
  leave_queue(op);
  if (response != nullptr) responded(op, *response, now);
  for (std::size_t i = 0; i < op.held_count_; ++i) {
    const Op::Held& held = op.held_[i];
    if (held.fate == Op::Fate::in_flight) give_back(held, now);
    // Nobody knows how it ended, and whoever leaves early must not get it for nothing.
    if (held.fate == Op::Fate::promised) charge_promised(held, now);
  }
  end(op);
}

void Worker::renew(Op& op, Now now) noexcept {
  for (std::size_t i = 0; i < op.held_count_; ++i) {
    Op::Held& held = op.held_[i];
    if (held.fate == Op::Fate::in_flight) {
      held.charge = held.by->renew(held.check, held.charge, now);
    }
  }
}

// More is charged although it can no longer be refused; less is given back.
void Worker::correct_cost(Op& op, store::Cost actual, Now now) noexcept {
  for (std::size_t i = 0; i < op.held_count_; ++i) {
    Op::Held& held = op.held_[i];
    if (held.fate == Op::Fate::in_flight || actual == held.check.cost) continue;
    if (held.fate == Op::Fate::promised) {
      held.check.cost = actual;
      continue;
    }
    store::Check difference = held.check;
    if (actual > held.check.cost) {
      difference.cost = actual - held.check.cost;
      held.by->charge(difference, now);
    } else {
      difference.cost = held.check.cost - actual;
      held.by->refund(difference, held.charge, now);
    }
  }
}

}  // namespace sluice::engine
