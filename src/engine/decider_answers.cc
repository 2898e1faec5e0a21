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

// Where a check was decided.
store::Source source_of(const store::Call& call, std::size_t check) noexcept {
  for (const store::Group& group : call.all_groups()) {
    if (check < std::size_t{group.first} + group.count) return group.source;
  }
  return store::Source::local;
}

}  // namespace

void Decider::later(store::Call& call) noexcept {
  Op& op = *static_cast<Op*>(call.owner);  // it waits: stores never complete a cancelled call
  Decider& self = *op.worker_;
  self.conclude(op, op.asked_at_);
  self.release(op);
  if (op.completed != nullptr) op.completed(op);
}

void Decider::conclude(Op& op, Now now) noexcept {
  Deciding& deciding = *op.deciding_;
  store::Call& call = deciding.call;
  const Rule* const closed = leave_out_undecided(deciding);
  record(op, Keep::all);
  if (closed != nullptr) {
    finish(op, Action::reject, Reason::store_failed, kUnavailable, closed);
    op.source = store::Source::closed;
    return;
  }
  if (!call.admitted) return refuse(op, now);
  if (call.count == 0) {
    ask_shadows(op, now);
    const bool is_open = call.group_count > 0;
    finish(op, Action::pass, is_open ? Reason::store_failed : Reason::allowed, kOk);
    if (is_open) op.source = store::Source::open;
    return;
  }
  if (call.count == 1) return admit(op, 0, call.answers[0].decision, now);
  const std::span<const store::Answer> answers = call.answered();
  admit(op, store::binding(answers), store::binding_decision(answers), now);
}

// Groups that the store could not decide say nothing: their checks go. The rule of one that is
// closed meanwhile, or null.
const Rule* Decider::leave_out_undecided(Deciding& deciding) noexcept {
  store::Call& call = deciding.call;
  const auto is_undecided = [](const store::Group& group) { return !group.has_answers(); };
  const auto by_failure = [](const store::Group& group) {
    return group.source >= store::Source::share;
  };
  const std::span<const store::Group> groups = call.all_groups();
  if (std::ranges::any_of(groups, by_failure)) [[unlikely]]
    ++counters_.store_failures;
  if (std::ranges::none_of(groups, is_undecided)) [[likely]]
    return nullptr;
  const Rule* closed = nullptr;
  std::size_t kept = 0;
  for (store::Group& group : call.all_groups()) {
    const std::size_t first = group.first;
    group.first = static_cast<std::uint8_t>(kept);
    if (group.verdict == store::GroupVerdict::closed && closed == nullptr) {
      closed = deciding.asked[first].plan->rule;
    }
    for (std::size_t i = first; group.has_answers() && i < first + group.count; ++i, ++kept) {
      call.checks[kept] = call.checks[i];
      call.answers[kept] = call.answers[i];
      deciding.asked[kept] = deciding.asked[i];
    }
    if (!group.has_answers()) group.count = 0;
  }
  call.count = kept;
  return closed;
}

void Decider::admit(Op& op, std::size_t binding, const Decision& decision, Now now) noexcept {
  if (decision.delay > Nanos{0} && !may_wait(op, now)) return;
  if (op.deciding_->shadow_count > 0) ask_shadows(op, now);
  finish(op, Action::pass, Reason::allowed, kOk, op.deciding_->asked[binding].plan->rule, decision);
  op.source = source_of(op.deciding_->call, binding);
}

// Records the limits' results, for headers and for people, and their charges, to be settled.
void Decider::record(Op& op, Keep keep) noexcept {
  const Deciding& deciding = *op.deciding_;
  const store::Call& call = deciding.call;
  for (const store::Group& group : call.all_groups()) {
    for (std::size_t i = group.first; i < std::size_t{group.first} + group.count; ++i) {
      const Deciding::Asked& asked = deciding.asked[i];
      const store::Answer& answer = call.answers[i];
      op.outcomes_.push_back({.rule = asked.plan->rule,
                              .limit = asked.limit->written,
                              .amount = asked.amount,
                              .decision = answer.decision,
                              .cost = call.checks[i].cost,
                              .shadow = false,
                              .source = group.source});
      if (call.admitted) hold(op, asked, call.checks[i], answer.charge, keep);
    }
  }
}

Op::Held Decider::held_by(const Deciding::Asked& asked, const store::Check& check,
                          const store::Charge& charge) noexcept {
  const Op::Fate fate = check.probe ? Op::Fate::promised
                        : asked.limit->written->limit.algorithm == Algorithm::concurrency
                            ? Op::Fate::in_flight
                            : Op::Fate::stays;
  return {.check = check,
          .holding = store::holding(charge, check.cost),
          .plan = asked.plan,
          .limit = asked.limit,
          .fate = fate};
}

void Decider::hold(Op& op, const Deciding::Asked& asked, const store::Check& check,
                   const store::Charge& charge, Keep keep) noexcept {
  const Op::Held held = held_by(asked, check, charge);
  if (held.fate == Op::Fate::stays && keep == Keep::unfinished) return;
  op.held_.push_back(held);
}

void Decider::refuse(Op& op, Now now) noexcept {
  store::Call& call = op.deciding_->call;
  const std::size_t binding = store::binding(call.answered());
  const Rule& rule = *op.deciding_->asked[binding].plan->rule;
  const Decision& decision = call.answers[binding].decision;
  const Reason reason = decision.verdict == Verdict::never ? Reason::never : Reason::limited;
  finish(op, refusal_by(rule), reason, rule.action.status, &rule, decision);
  op.source = source_of(call, binding);
  punish(op, now);
}

// ---- queues -----------------------------------------------------------------------------------

// A queued request takes a place of the rule that delays it longest. If none is left, the charges
// are refunded and the request is rejected at once.
bool Decider::may_wait(Op& op, Now now) noexcept {
  Deciding& deciding = *op.deciding_;
  store::Call& call = deciding.call;
  std::size_t slowest = 0;
  for (std::size_t i = 1; i < call.count; ++i) {
    if (call.answers[i].decision.delay > call.answers[slowest].decision.delay) slowest = i;
  }
  const Plan& plan = *deciding.asked[slowest].plan;
  if (plan.held == nullptr) return true;
  if (plan.held->fetch_add(1, std::memory_order_relaxed) < plan.rule->action.max_queued) {
    op.queued_ = &plan;
    return true;
  }
  plan.held->fetch_sub(1, std::memory_order_relaxed);
  for (Op::Held& held : op.held_) give_back(held, now);
  op.held_.clear();
  Decision& decision = call.answers[slowest].decision;
  decision.verdict = Verdict::rejected;
  decision.retry_after = decision.delay;
  decision.delay = Nanos{0};
  finish(op, Action::reject, Reason::queue_full, plan.rule->action.status, plan.rule, decision);
  op.source = source_of(call, slowest);
  punish(op, now);  // a rejection by this rule like any other
  return false;
}

// ---- blocks -----------------------------------------------------------------------------------

// Blocks are this node's own, whatever the store of the limits is: they save its time.
const Decision& Decider::ask_alone(const PlannedLimit& limit, std::uint64_t key, store::Cost cost,
                                   Now now) noexcept {
  alone_.clear();
  alone_.count = 1;
  alone_.group_from(0);
  alone_.checks[0] = {.key = {.low = key ^ limit.salt, .high = 0},
                      .salt = limit.salt,
                      .limit = limit.number,
                      .cost = cost,
                      // A cell shared by several keys would block one for requests of another.
                      .on_table_full = OnTableFull::allow,
                      .may_be_refunded = true};
  (void)store_.decide_all(alone_, now);  // at once: it is local
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
  const Deciding& deciding = *op.deciding_;
  const Plan* previous = nullptr;
  for (std::size_t i = 0; i < deciding.call.count; ++i) {
    const Deciding::Asked& asked = deciding.asked[i];
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
  const Deciding& deciding = *op.deciding_;
  const Plan* previous = nullptr;
  for (std::size_t i = 0; i < deciding.call.count; ++i) {
    const Deciding::Asked& asked = deciding.asked[i];
    if (deciding.call.answers[i].decision.allowed() || !asked.plan->block) continue;
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
    write_down(deciding, asked, now);
  }
}

void Decider::write_down(const Deciding& deciding, const Deciding::Asked& asked, Now now) noexcept {
  if (book_ == nullptr) return;
  const PlannedBlock& block = *asked.plan->block;
  const Rule& rule = *asked.plan->rule;
  std::array<char, BlockBook::kLabelBytes> text;
  const std::string_view captured{deciding.labels.data() + asked.label.first, asked.label.size};
  const bool displaced = book_->write({.block = asked.key ^ block.block.salt,
                                       .refusals = asked.key ^ block.refusals.salt,
                                       .since = now.wall(),
                                       .until = now.wall() + rule.block->duration,
                                       .rule = rule.name,
                                       .label = write_label(captured, rule, text)},
                                      now.wall());
  if (displaced) ++counters_.block_names_displaced;
}

}  // namespace sluice::engine
