#include "store/local/local_authority.h"

#include "store/local/approximate_cells.h"
#include <sluice/core/compiled_limit.h>

#include <algorithm>
#include <optional>

namespace sluice::store {

Completion LocalAuthority::decide_all(Call& call, Now now) noexcept {
  ++counts_.decides;
  if (call.kind == Call::Kind::all_or_nothing) {
    call.admitted = decide_together(call, now);
  } else {
    decide_apart(call, now);
  }
  return Completion::now;
}

bool LocalAuthority::decide_together(Call& call, Now now) noexcept {
  if (call.count == 1 && !call.checks[0].probe) {
    decide_one(call.checks[0], now, call.answers[0]);
    const bool admitted = call.answers[0].decision.allowed();
    call.groups[0].verdict = admitted ? GroupVerdict::admitted : GroupVerdict::rejected;
    call.groups[0].source = Source::local;
    return admitted;
  }
  const bool admitted = table_.decide_all(call.asked(), now, call.answered());
  for (Group& group : call.all_groups()) {
    const auto of_group = call.answered().subspan(group.first, group.count);
    group.source = Source::local;
    const bool has_room = admitted || std::ranges::all_of(of_group, [](const Answer& answer) {
                            return answer.decision.allowed();
                          });
    group.verdict = has_room ? GroupVerdict::admitted : GroupVerdict::rejected;
  }
  return admitted;
}

void LocalAuthority::decide_apart(Call& call, Now now) noexcept {
  call.admitted = true;
  for (Group& group : call.all_groups()) {
    const auto checks = call.asked().subspan(group.first, group.count);
    const auto answers = call.answered().subspan(group.first, group.count);
    bool admitted = false;
    if (group.count == 1 && !checks[0].probe) {
      decide_one(checks[0], now, answers[0]);
      admitted = answers[0].decision.allowed();
    } else {
      admitted = table_.decide_all(checks, now, answers);
    }
    group.source = Source::local;
    group.verdict = admitted ? GroupVerdict::admitted : GroupVerdict::rejected;
    call.admitted &= admitted;
  }
}

// Leased units have no receipt by which they could be refunded.
void LocalAuthority::decide_one(const Check& check, Now now, Answer& answer) noexcept {
  const ThreadCache::Use use{.remember_refusals = !check.may_be_refunded,
                             .thread_leases = check.thread_leases && !check.may_be_refunded};
  worker_.decide(check, use, now, answer);
}

void LocalAuthority::refund(const Check& check, Holding& holding, Now now) noexcept {
  ++counts_.refunds;
  Cost all = holding.cost;
  refund_part(check, holding.charge, all, now);
  refund_part(check, holding.more, all, now);
  holding = {};
}

// No receipt covers more than was charged under it, so a refund takes nothing of other requests.
// The oldest charge goes first: a bucket that refunds an older one still knows exactly where the
// younger ones are, but not vice versa.
void LocalAuthority::correct(const Check& check, Holding& holding, Cost cost, Now now) noexcept {
  if (cost > holding.cost) return charge_more(check, holding, cost - holding.cost, now);
  if (cost == holding.cost) return;
  ++counts_.refunds;
  Cost excess = holding.cost - cost;
  holding.cost = cost;
  refund_part(check, holding.charge, excess, now);
  refund_part(check, holding.more, excess, now);
  holding.cost += excess;  // what no receipt covers stays
}

// An exceeded limit takes less than the cost.
void LocalAuthority::charge_more(const Check& check, Holding& holding, Cost cost,
                                 Now now) noexcept {
  ++counts_.charges;
  Check added = check;
  added.cost = cost;
  const Charge charge = table_.force(added, now).charge;
  holding.cost += charge.receipt.cost;
  if (charge.receipt.cost == 0) return;
  const core::CompiledLimit& limit = table_.limit(charge.limit).compiled();
  for (Charge* const before : {&holding.charge, &holding.more}) {
    const bool is_joinable =
        before->limit == charge.limit && !ApproximateCells::issued(charge.receipt);
    const auto joined = is_joinable ? core::joined(limit, before->receipt, charge.receipt)
                                    : std::optional<Receipt>{};
    if (!joined) continue;
    before->receipt = *joined;
    return;
  }
  if (holding.more.receipt.cost > 0) {
    ++counts_.charges_unrefundable;
    return;
  }
  holding.more = charge;
}

void LocalAuthority::refund_part(const Check& check, Charge& charge, Cost& excess,
                                 Now now) noexcept {
  Check part = check;
  part.cost = std::min(excess, charge.receipt.cost);
  if (part.cost == 0) return;
  table_.refund(part, charge, now);
  charge.receipt.cost -= part.cost;
  excess -= part.cost;
}

}  // namespace sluice::store
