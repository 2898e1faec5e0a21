// The store's results for a request, and the decision by them.
#include "engine/block_label.h"
#include "engine/decider.h"
#include "engine/http_statuses.h"
#include "store/binding.h"

#include <algorithm>
#include <array>

namespace sluice::engine {
namespace {

using rules::Rule;

Action refusal_by(const Rule& rule) noexcept {
  return rule.action.kind == rules::Action::Kind::drop ? Action::drop : Action::reject;
}

}  // namespace

void Decider::later(store::Call& call) noexcept {
  Op& op = *static_cast<Op*>(call.owner);  // it waits: stores never complete a cancelled call
  op.worker_->conclude(op, op.worker_->store_, op.asked_at_);
  if (op.completed != nullptr) op.completed(op);
}

void Decider::conclude(Op& op, store::Store& by, Now now) noexcept {
  if (op.call_.failed) return decide_without_store(op, now);
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

void Decider::admit(Op& op, std::size_t binding, const Decision& decision, Now now) noexcept {
  if (decision.delay > Nanos{0} && !may_wait(op, now)) return;
  if (op.shadow_count_ > 0) ask_shadows(op, now);
  finish(op, Action::pass, Reason::allowed, kOk, op.asked_[binding].plan->rule, decision);
}

// Records the limits' results, for headers and for people, and their charges, to be settled.
void Decider::record(Op& op, store::Store& by, bool keep_charges) noexcept {
  for (std::size_t i = 0; i < op.call_.count; ++i) {
    const Op::Asked& asked = op.asked_[i];
    const store::Answer& answer = op.call_.answers[i];
    op.outcomes_[op.outcome_count_++] = {.rule = asked.plan->rule,
                                         .limit = asked.limit->written,
                                         .amount = asked.amount,
                                         .decision = answer.decision,
                                         .shadow = false,
                                         .cost = op.call_.checks[i].cost};
    if (op.call_.admitted) hold(op, asked, op.call_.checks[i], answer.charge, by, keep_charges);
  }
}

void Decider::hold(Op& op, const Op::Asked& asked, const store::Check& check,
                   const store::Charge& charge, store::Store& by, bool keep_charges) noexcept {
  const Op::Fate fate = check.probe ? Op::Fate::promised
                        : asked.limit->written->limit.algorithm == Algorithm::concurrency
                            ? Op::Fate::in_flight
                            : Op::Fate::stays;
  if (fate == Op::Fate::stays && !keep_charges) return;
  op.held_[op.held_count_++] = {.check = check,
                                .charge = charge,
                                .plan = asked.plan,
                                .limit = asked.limit,
                                .by = &by,
                                .fate = fate};
}

void Decider::refuse(Op& op, Now now) noexcept {
  const std::size_t binding = store::binding(op.call_.answered());
  const Rule& rule = *op.asked_[binding].plan->rule;
  const Decision& decision = op.call_.answers[binding].decision;
  const Reason reason = decision.verdict == Verdict::never ? Reason::never : Reason::limited;
  finish(op, refusal_by(rule), reason, rule.action.status, &rule, decision);
  punish(op, now);
}

// ---- queues -----------------------------------------------------------------------------------

// A queued request takes a place of the rule that delays it longest. If none is left, the charges
// are refunded and the request is rejected at once.
bool Decider::may_wait(Op& op, Now now) noexcept {
  std::size_t slowest = 0;
  for (std::size_t i = 1; i < op.call_.count; ++i) {
    if (op.call_.answers[i].decision.delay > op.call_.answers[slowest].decision.delay) slowest = i;
  }
  const Plan& plan = *op.asked_[slowest].plan;
  if (plan.held == nullptr) return true;
  if (plan.held->fetch_add(1, std::memory_order_relaxed) < plan.rule->action.max_queued) {
    op.queued_ = &plan;
    return true;
  }
  plan.held->fetch_sub(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < op.held_count_; ++i) give_back(op.held_[i], now);
  op.held_count_ = 0;
  Decision& decision = op.call_.answers[slowest].decision;
  decision.verdict = Verdict::rejected;
  decision.retry_after = decision.delay;
  decision.delay = Nanos{0};
  finish(op, Action::reject, Reason::queue_full, plan.rule->action.status, plan.rule, decision);
  punish(op, now);  // a rejection by this rule like any other
  return false;
}

// ---- blocks -----------------------------------------------------------------------------------

// Blocks are this node's own, whatever the store of the limits is: they save its time.
const Decision& Decider::ask_alone(const PlannedLimit& limit, std::uint64_t key, store::Cost cost,
                                   Now now) noexcept {
  alone_.count = 1;
  alone_.checks[0] = {.key = {.low = key ^ limit.salt, .high = 0},
                      .limit = limit.number,
                      .cost = cost,
                      // A cell shared by several keys would block one for requests of another.
                      .on_table_full = OnTableFull::allow,
                      .may_be_refunded = true};
  (void)fallback_.decide_all(alone_, now);
  return alone_.answers[0].decision;
}

bool Decider::is_blocked(Op& op, const Plan& plan, std::uint64_t key, Now now) noexcept {
  const Decision& count = ask_alone(plan.block->block, key, 0, now);
  if (count.remaining > 0) return false;
  const Rule& rule = *plan.rule;
  finish(op, refusal_by(rule), Reason::blocked, rule.action.status, &rule,
         {.verdict = Verdict::rejected,
          .limit = count.limit,
          .remaining = 0,
          .reset_after = count.reset_after,
          .retry_after = count.reset_after});
  return true;
}

bool Decider::blocked(Op& op, Early early, Now now) noexcept {
  if (!op.pin_->snapshot->has_blocks()) return false;
  const Plan* previous = nullptr;
  for (std::size_t i = 0; i < op.call_.count; ++i) {
    const Op::Asked& asked = op.asked_[i];
    if (!asked.plan->block || asked.plan == previous) continue;  // once for all limits of a rule
    previous = asked.plan;
    if (asked.plan->blocks_early && early == Early::done) continue;
    if (is_blocked(op, *asked.plan, asked.key, now)) return true;
  }
  return false;
}

// A client blocked by address gets no token verified and uses up no limit. If more rules match than
// there is room for, the request is rejected later.
bool Decider::blocked_by_request(Op& op, const rules::Asked& asked, Now now) noexcept {
  const Snapshot& snapshot = *op.pin_->snapshot;
  snapshot.rules().match(asked, rules::Phase::blocks, matches_);
  for (const rules::Matched& matched : matches_.span()) {
    const Plan& plan = snapshot.plan(matched.rule);
    const Key key = key_of(plan, asked, snapshot.rules().path(asked, matched));
    if (key.fate == Key::Fate::counted && is_blocked(op, plan, key.digest.low, now)) return true;
  }
  return false;
}

// Begins the blocks of rules that rejected the request and whose threshold is reached. The response
// and the list of blocks show only blocks that the table keeps.
void Decider::punish(Op& op, Now now) noexcept {
  const Plan* previous = nullptr;
  for (std::size_t i = 0; i < op.call_.count; ++i) {
    const Op::Asked& asked = op.asked_[i];
    if (op.call_.answers[i].decision.allowed() || !asked.plan->block) continue;
    if (asked.plan == previous) continue;
    previous = asked.plan;
    const Decision& refusals = ask_alone(asked.plan->block->refusals, asked.key, 1, now);
    if (refusals.allowed() && refusals.remaining > 0) {
      // Nor does a full table count towards a block.
      if (alone_.answers[0].charge.receipt.cost == 0) ++counters_.block_rejections_lost;
      continue;
    }
    const Decision& block = ask_alone(asked.plan->block->block, asked.key, 1, now);
    // A full table allows the charge without keeping it: then the next request finds no block.
    if (block.allowed() && alone_.answers[0].charge.receipt.cost == 0) {
      ++counters_.blocks_dropped;
      continue;
    }
    const Nanos lasts = block.reset_after;
    // A client that obeys retry_after must not meet the block.
    op.decision.reset_after = std::max(op.decision.reset_after, lasts);
    if (op.decision.retry_after) {
      op.decision.retry_after = std::max(*op.decision.retry_after, lasts);
    }
    ++counters_.blocks;
    write_down(op, asked, now);
  }
}

void Decider::write_down(const Op& op, const Op::Asked& asked, Now now) noexcept {
  if (book_ == nullptr) return;
  const PlannedBlock& block = *asked.plan->block;
  const Rule& rule = *asked.plan->rule;
  std::array<char, BlockBook::kLabelBytes> text;
  const std::string_view captured{op.labels_.data() + asked.label.first, asked.label.size};
  const bool displaced = book_->write({.block = asked.key ^ block.block.salt,
                                       .refusals = asked.key ^ block.refusals.salt,
                                       .since = now.wall(),
                                       .until = now.wall() + rule.block->duration,
                                       .rule = rule.name,
                                       .label = write_label(captured, rule, text)},
                                      now.wall());
  if (displaced) ++counters_.block_names_displaced;
}

// ---- shadows ----------------------------------------------------------------------------------

// Each rule by itself, as if there were no other: the limits of one rule are checked together.
void Decider::ask_shadows(Op& op, Now now) noexcept {
  for (std::size_t first = 0; first < op.shadow_count_;) {
    std::size_t end = first + 1;
    while (end < op.shadow_count_ && op.shadows_[end].plan == op.shadows_[first].plan) ++end;
    ask_shadow(op, first, end - first, now);
    first = end;
  }
}

// Charged if it would allow, and settled like all others; it never rejects.
void Decider::ask_shadow(Op& op, std::size_t first, std::size_t count, Now now) noexcept {
  alone_.count = count;
  std::copy_n(op.shadow_checks_.begin() + static_cast<std::ptrdiff_t>(first), count,
              alone_.checks.begin());
  (void)fallback_.decide_all(alone_, now);
  if (!alone_.admitted) ++counters_.would_refuse;
  for (std::size_t i = 0; i < count; ++i) {
    const Op::Asked& asked = op.shadows_[first + i];
    const store::Check& check = alone_.checks[i];
    const store::Answer& answer = alone_.answers[i];
    op.outcomes_[op.outcome_count_++] = {.rule = asked.plan->rule,
                                         .limit = asked.limit->written,
                                         .amount = asked.amount,
                                         .decision = answer.decision,
                                         .shadow = true,
                                         .cost = check.cost};
    if (!alone_.admitted) continue;
    hold(op, asked, check, answer.charge, fallback_, !asked.plan->rule->before_auth);
  }
}

// ---- when the store fails ---------------------------------------------------------------------

void Decider::give_up_waiting(Op& op, Now now) noexcept {
  store_.cancel(op.call_);
  decide_without_store(op, now);
}

void Decider::decide_without_store(Op& op, Now now) noexcept {
  ++counters_.store_failures;
  op.source = "fallback";
  // The strictest of the matching rules: one rule with `on_failure: closed` is enough.
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
    ask_shadows(op, now);
    finish(op, Action::pass, Reason::store_failed, kOk);
    return;
  }
  // This node's own counts stand in; limits that are open on failure are skipped.
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
