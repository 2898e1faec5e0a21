// What the store says about a request, and what follows from it.
#include "engine/block_label.h"
#include "engine/worker.h"
#include "store/binding.h"

#include <algorithm>
#include <array>

namespace sluice::engine {
namespace {

using rules::Over;
using rules::Rule;

constexpr std::uint16_t kOk = 200;
constexpr std::uint16_t kUnavailable = 503;

Action refusal_by(const Rule& rule) noexcept {
  return rule.over.kind == Over::Kind::drop ? Action::drop : Action::reject;
}

}  // namespace

void Worker::later(store::Call& call) noexcept {
  Op& op = *static_cast<Op*>(call.owner);
  if (op.stage_ != Op::Stage::waiting) return;  // nobody waits any more
  op.worker_->conclude(op, op.worker_->store_, op.asked_at_);
  if (op.completed != nullptr) op.completed(op);
}

void Worker::conclude(Op& op, store::Store& by, Now now) noexcept {
  if (op.call_.failed) return give_up_waiting(op, now);
  record(op, by, true);
  if (!op.call_.admitted) return refuse(op, now);
  if (op.call_.count == 0) {
    ask_shadows(op, now);
    finish(op, Action::pass, Reason::allowed, kOk);
    return;
  }
  if (op.call_.count == 1) return admit(op, 0, op.call_.answers[0].decision, now);
  const std::span<const store::Answer> answers = op.call_.answered();
  admit(op, store::binding(answers), store::binding_decision(answers), now);
}

void Worker::admit(Op& op, std::size_t binding, const Decision& decision, Now now) noexcept {
  if (decision.delay > Nanos{0} && !may_wait(op, now)) return;
  if (op.shadow_count_ > 0) ask_shadows(op, now);
  finish(op, Action::pass, Reason::allowed, kOk, op.asked_[binding].plan->rule, decision);
}

// What the limits said, for headers and for people; and what they charged, to be settled.
void Worker::record(Op& op, store::Store& by, bool keep_charges) noexcept {
  for (std::size_t i = 0; i < op.call_.count; ++i) {
    const Op::Asked& asked = op.asked_[i];
    const store::Answer& answer = op.call_.answers[i];
    op.outcomes_[op.outcome_count_++] = {.rule = asked.plan->rule,
                                         .limit = asked.limit->written,
                                         .amount = asked.amount,
                                         .decision = answer.decision,
                                         .shadow = false,
                                         .cost = op.call_.checks[i].cost};
    const Op::Fate fate = op.call_.checks[i].probe ? Op::Fate::promised
                          : asked.limit->written->limit.algorithm == Algorithm::concurrency
                              ? Op::Fate::in_flight
                              : Op::Fate::stays;
    if (!op.call_.admitted || (fate == Op::Fate::stays && !keep_charges)) continue;
    if (op.held_count_ == Op::kMost) continue;
    op.held_[op.held_count_++] = {.check = op.call_.checks[i],
                                  .charge = answer.charge,
                                  .plan = asked.plan,
                                  .by = &by,
                                  .fate = fate};
  }
}

void Worker::refuse(Op& op, Now now) noexcept {
  const std::size_t binding = store::binding(op.call_.answered());
  const Rule& rule = *op.asked_[binding].plan->rule;
  const Decision& decision = op.call_.answers[binding].decision;
  const Reason reason = decision.verdict == Verdict::never ? Reason::never : Reason::limited;
  finish(op, refusal_by(rule), reason, rule.over.status, &rule, decision);
  punish(op, now);
}

// ---- queues -----------------------------------------------------------------------------------

// A request that is to be held takes one of the places of the rule that holds it longest. Where
// none is left, what was charged is given back: a request that would only pile up is better told.
bool Worker::may_wait(Op& op, Now now) noexcept {
  std::size_t slowest = 0;
  for (std::size_t i = 1; i < op.call_.count; ++i) {
    if (op.call_.answers[i].decision.delay > op.call_.answers[slowest].decision.delay) slowest = i;
  }
  const Plan& plan = *op.asked_[slowest].plan;
  if (plan.held == nullptr) return true;
  if (plan.held->fetch_add(1, std::memory_order_relaxed) < plan.rule->over.waiting) {
    op.queued_ = &plan;
    return true;
  }
  plan.held->fetch_sub(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < op.held_count_; ++i) give_back(op.held_[i], now);
  op.held_count_ = 0;
  Decision decision = op.call_.answers[slowest].decision;
  decision.verdict = Verdict::refused;
  decision.retry_after = decision.delay;
  decision.delay = Nanos{0};
  finish(op, Action::reject, Reason::queue_full, plan.rule->over.status, plan.rule, decision);
  return false;
}

// ---- blocks -----------------------------------------------------------------------------------

// These are this node's own, whatever the store of the limits is: they save its time.
const Decision& Worker::ask_alone(const PlannedLimit& limit, std::uint64_t key, store::Cost cost,
                                  Now now) noexcept {
  alone_.count = 1;
  alone_.checks[0] = {.key = {.low = key ^ limit.salt, .high = 0},
                      .limit = limit.number,
                      .cost = cost,
                      .may_be_refunded = true};
  (void)fallback_.decide_all(alone_, now);
  return alone_.answers[0].decision;
}

bool Worker::blocked(Op& op, Now now) noexcept {
  if (!op.pin_->snapshot->has_blocks()) return false;
  const Plan* previous = nullptr;
  for (std::size_t i = 0; i < op.call_.count; ++i) {
    const Op::Asked& asked = op.asked_[i];
    if (!asked.plan->block || asked.plan == previous) continue;  // once for all limits of a rule
    previous = asked.plan;
    const Decision& count = ask_alone(asked.plan->block->block, asked.key, 0, now);
    if (count.remaining > 0) continue;
    const Rule& rule = *asked.plan->rule;
    finish(op, refusal_by(rule), Reason::blocked, rule.over.status, &rule,
           {.verdict = Verdict::refused,
            .limit = count.limit,
            .remaining = 0,
            .reset_after = count.reset_after,
            .retry_after = count.reset_after});
    return true;
  }
  return false;
}

// Rules that refused by themselves, and whose patience is used up.
void Worker::punish(Op& op, Now now) noexcept {
  const Plan* previous = nullptr;
  for (std::size_t i = 0; i < op.call_.count; ++i) {
    const Op::Asked& asked = op.asked_[i];
    if (op.call_.answers[i].decision.allowed() || !asked.plan->block) continue;
    if (asked.plan == previous) continue;
    previous = asked.plan;
    const Decision& refusals = ask_alone(asked.plan->block->refusals, asked.key, 1, now);
    if (refusals.allowed() && refusals.remaining > 0) continue;
    const Nanos lasts = ask_alone(asked.plan->block->block, asked.key, 1, now).reset_after;
    // Whoever comes back when the limit allows it must not find the block.
    op.decision.reset_after = std::max(op.decision.reset_after, lasts);
    if (op.decision.retry_after) {
      op.decision.retry_after = std::max(*op.decision.retry_after, lasts);
    }
    ++counters_.blocks;
    write_down(op, asked, now);
  }
}

void Worker::write_down(const Op& op, const Op::Asked& asked, Now now) noexcept {
  if (book_ == nullptr) return;
  const PlannedBlock& block = *asked.plan->block;
  const Rule& rule = *asked.plan->rule;
  std::array<char, BlockBook::kLabelBytes> text;
  const std::string_view captured{op.labels_.data() + asked.label.first, asked.label.size};
  book_->write({.block = asked.key ^ block.block.salt,
                .refusals = asked.key ^ block.refusals.salt,
                .since = now.wall(),
                .until = now.wall() + rule.block->lasts,
                .rule = rule.name,
                .label = write_label(captured, rule, text)},
               now.wall());
}

// ---- shadows ----------------------------------------------------------------------------------

// Each by itself: they are charged where they would admit, and refuse nothing.
void Worker::ask_shadows(Op& op, Now now) noexcept {
  for (std::size_t i = 0; i < op.shadow_count_; ++i) {
    alone_.count = 1;
    alone_.checks[0] = op.shadow_checks_[i];
    (void)fallback_.decide_all(alone_, now);
    const Op::Asked& asked = op.shadows_[i];
    if (!alone_.admitted) ++counters_.would_refuse;
    op.outcomes_[op.outcome_count_++] = {.rule = asked.plan->rule,
                                         .limit = asked.limit->written,
                                         .amount = asked.amount,
                                         .decision = alone_.answers[0].decision,
                                         .shadow = true,
                                         .cost = alone_.checks[0].cost};
  }
}

// ---- when the store does not answer -----------------------------------------------------------

void Worker::give_up_waiting(Op& op, Now now) noexcept {
  ++counters_.store_failures;
  store_.cancel(op.call_);
  op.source = "fallback";
  // The strictest of the rules that are concerned: one that must not pass unknown is enough.
  const Rule* closed = nullptr;
  bool share = false;
  for (std::size_t i = 0; i < op.call_.count; ++i) {
    const Rule& rule = *op.asked_[i].plan->rule;
    share |= rule.on_failure == rules::OnFailure::share;
    if (rule.on_failure == rules::OnFailure::closed) closed = &rule;
  }
  if (closed != nullptr) {
    finish(op, Action::reject, Reason::store_failed, kUnavailable, closed);
    return;
  }
  if (!share) {
    finish(op, Action::pass, Reason::store_failed, kOk);
    return;
  }
  // This node's own counts stand in; limits that are open on failure are left out.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < op.call_.count; ++i) {
    if (op.asked_[i].plan->rule->on_failure != rules::OnFailure::share) continue;
    op.call_.checks[kept] = op.call_.checks[i];
    op.asked_[kept++] = op.asked_[i];
  }
  op.call_.count = kept;
  (void)fallback_.decide_all(op.call_, now);
  op.call_.failed = false;
  conclude(op, fallback_, now);
}

}  // namespace sluice::engine
