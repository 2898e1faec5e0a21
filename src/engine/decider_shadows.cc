// Shadow rules: charged for a request that is admitted, if they would admit it; they never reject.
//
// The local ones are decided at once. Nothing waits for the others: their results are counted, and
// are in the log if they arrive before the request is over, but never in its headers.
#include "engine/decider.h"

#include <algorithm>

namespace sluice::engine {

// Each rule by itself, as if there were no other: the limits of one rule are checked together.
void Decider::ask_shadows(Op& op, Now now) noexcept {
  const Deciding& deciding = *op.deciding_;
  for (std::size_t first = 0; first < deciding.shadow_count;) {
    const Plan* const plan = deciding.shadows[first].plan;
    std::size_t end = first + 1;
    while (end < deciding.shadow_count && deciding.shadows[end].plan == plan) ++end;
    if (plan->is_shared) {
      ask_shadow_later(op, first, end - first, now);
    } else {
      ask_shadow(op, first, end - first, now);
    }
    first = end;
  }
}

void Decider::ask_shadow(Op& op, std::size_t first, std::size_t count, Now now) noexcept {
  const Deciding& deciding = *op.deciding_;
  alone_.clear();
  alone_.count = count;
  alone_.group_from(0);
  std::copy_n(deciding.shadow_checks.begin() + static_cast<std::ptrdiff_t>(first), count,
              alone_.checks.begin());
  (void)store_.decide_all(alone_, now);  // at once: it is local
  if (!alone_.admitted) ++counters_.would_refuse;
  for (std::size_t i = 0; i < count; ++i) {
    const Deciding::Asked& asked = deciding.shadows[first + i];
    const store::Answer& answer = alone_.answers[i];
    record_shadow(op, asked, alone_.checks[i], answer, store::Source::local);
    if (!alone_.admitted) continue;
    hold(op, asked, alone_.checks[i], answer.charge,
         asked.plan->rule->before_auth ? Keep::unfinished : Keep::all);
  }
}

void Decider::record_shadow(Op& op, const Deciding::Asked& asked, const store::Check& check,
                            const store::Answer& answer, store::Source source) noexcept {
  op.outcomes_.push_back({.rule = asked.plan->rule,
                          .limit = asked.limit->written,
                          .amount = asked.amount,
                          .decision = answer.decision,
                          .cost = check.cost,
                          .shadow = true,
                          .source = source});
}

// ---- decided later ------------------------------------------------------------------------------

void Decider::ask_shadow_later(Op& op, std::size_t first, std::size_t count, Now now) noexcept {
  const Deciding& deciding = *op.deciding_;
  Deciding& shadow = pool_.take();
  shadow.clear();
  shadow.call.count = count;
  shadow.call.group_from(0);
  std::copy_n(deciding.shadow_checks.begin() + static_cast<std::ptrdiff_t>(first), count,
              shadow.call.checks.begin());
  std::copy_n(deciding.shadows.begin() + static_cast<std::ptrdiff_t>(first), count,
              shadow.asked.begin());
  shadow.call.completed = &Decider::shadow_later;
  shadow.call.owner = &shadow;
  shadow.worker = this;
  shadow.request = &op;
  shadow.asked_at = now;
  shadow.ended = Deciding::Ended::not_yet;
  shadow.pin = op.pin_;
  ++shadow.pin->ops;
  if (store_.decide_all(shadow.call, now) == store::Completion::now) return conclude_shadow(shadow);
  ++op.late_shadows_;
  late_shadows_.push_back(&shadow);
}

void Decider::shadow_later(store::Call& call) noexcept {
  Deciding& shadow = *static_cast<Deciding*>(call.owner);
  std::vector<Deciding*>& all = shadow.worker->late_shadows_;
  const auto place = std::ranges::find(all, &shadow);
  *place = all.back();
  all.pop_back();
  if (shadow.request != nullptr) --shadow.request->late_shadows_;
  shadow.worker->conclude_shadow(shadow);
}

void Decider::conclude_shadow(Deciding& shadow) noexcept {
  const store::Group& group = shadow.call.groups[0];
  if (group.has_answers()) {
    if (!shadow.call.admitted) ++counters_.would_refuse;
    for (std::size_t i = 0; i < shadow.call.count; ++i) {
      const Deciding::Asked& asked = shadow.asked[i];
      const store::Check& check = shadow.call.checks[i];
      const store::Answer& answer = shadow.call.answers[i];
      if (shadow.request != nullptr) {
        record_shadow(*shadow.request, asked, check, answer, group.source);
      }
      if (shadow.call.admitted) settle_late(shadow, held_by(asked, check, answer.charge));
    }
  }
  --shadow.pin->ops;
  pool_.give_back(shadow);
}

// The charge of a shadow rule, as far as its request has come meanwhile.
void Decider::settle_late(const Deciding& shadow, Op::Held held) noexcept {
  using Ended = Deciding::Ended;
  const bool is_over = shadow.request == nullptr;
  switch (held.fate) {
    case Op::Fate::in_flight:
      if (is_over) return give_back(held, shadow.asked_at);
      break;
    case Op::Fate::stays:
      if (shadow.ended == Ended::does_not_count) return give_back(held, shadow.asked_at);
      if (is_over || shadow.ended == Ended::counts) return store_.keep(held.holding);
      break;
    case Op::Fate::promised:
      if (shadow.ended == Ended::counts) return charge_promised(held, shadow.asked_at);
      if (shadow.ended == Ended::does_not_count) return;
      break;
  }
  shadow.request->held_.push_back(held);
}

// The response to the request has arrived, while shadow rules are still being decided.
void Decider::tell_shadows(const Op& op, const ResponseView& response) noexcept {
  for (Deciding* const shadow : late_shadows_) {
    if (shadow->request != &op) continue;
    const Plan& plan = *shadow->asked[0].plan;
    shadow->ended =
        is_counted(plan, response) ? Deciding::Ended::counts : Deciding::Ended::does_not_count;
  }
}

// The request is over.
void Decider::leave_shadows(Op& op, Gone how) noexcept {
  for (Deciding* const shadow : late_shadows_) {
    if (shadow->request != &op) continue;
    shadow->request = nullptr;
    if (how == Gone::abandoned) {
      shadow->ended = Deciding::Ended::does_not_count;
    } else if (shadow->ended == Deciding::Ended::not_yet) {
      shadow->ended = Deciding::Ended::counts;
    }
  }
  op.late_shadows_ = 0;
}

}  // namespace sluice::engine
