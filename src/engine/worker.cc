#include "engine/worker.h"

#include "engine/key.h"
#include "identity/host.h"
#include "store/binding.h"

#include <algorithm>
#include <charconv>

namespace sluice::engine {
namespace {

using rules::Over;
using rules::Phase;
using rules::Rule;
using store::Completion;

constexpr std::uint16_t kUnauthorized = 401;
constexpr std::uint16_t kForbidden = 403;
constexpr std::uint16_t kBadRequest = 400;
constexpr std::uint16_t kUnavailable = 503;

bool is_shadow(const Rule& rule) noexcept { return rule.over.kind == Over::Kind::shadow; }

bool counts(const rules::Count& count, const ResponseView& response) noexcept {
  const auto in = [&](const auto& range) {
    return response.status >= range.first && response.status <= range.second;
  };
  if (std::ranges::any_of(count.statuses, in)) return true;
  if (response.grpc_status &&
      std::ranges::find(count.grpc_statuses, *response.grpc_status) != count.grpc_statuses.end()) {
    return true;
  }
  if (!count.header) return false;
  const auto has_it = [&](const HeaderView& header) {
    if (!equals_ignoring_case(header.name, count.header->name)) return false;
    const rules::TextMatch& wanted = count.header->value;
    return wanted.kind == rules::TextMatch::Kind::prefix  ? header.value.starts_with(wanted.text)
           : wanted.kind == rules::TextMatch::Kind::exact ? header.value == wanted.text
                                                          : true;
  };
  return std::ranges::any_of(response.headers, has_it);
}

}  // namespace

std::string_view to_string(Reason reason) noexcept {
  switch (reason) {
    case Reason::allowed: return "allowed";
    case Reason::unmatched: return "unmatched";
    case Reason::limited: return "limited";
    case Reason::never: return "never";
    case Reason::blocked: return "blocked";
    case Reason::missing_value: return "missing_value";
    case Reason::unauthenticated: return "unauthenticated";
    case Reason::no_rule: return "no_rule";
    case Reason::too_many_rules: return "too_many_rules";
    case Reason::bad_target: return "bad_target";
    case Reason::store_failed: return "store_failed";
  }
  return "unknown";
}

// ---- deciding ---------------------------------------------------------------------------------

Completion Worker::decide(Op& op, const RequestView& request, Now now) noexcept {
  const identity::Origin origin = identifier_->address_of(request);
  identity::Identity early;
  early.address = origin.address;
  early.country = origin.country;
  early.asn = origin.asn;
  return decide_as(op, request, early, now,
                   [&] { return identifier_->identify(request, origin, now, scratch_); });
}

Completion Worker::decide(Op& op, const RequestView& request, const identity::Identity& client,
                          Now now) noexcept {
  identity::Identity early;
  early.address = client.address;
  early.country = client.country;
  early.asn = client.asn;
  return decide_as(op, request, early, now, [&] { return client; });
}

// `verify` says who is asking, once the rules that need not know have had their word.
template <class Verify>
Completion Worker::decide_as(Op& op, const RequestView& request, identity::Identity client, Now now,
                             Verify&& verify) noexcept {
  ++counters_.decided;
  op.snapshot_ = snapshot_;
  op.worker_ = this;
  op.asked_at_ = now;
  op.outcome_count_ = op.held_count_ = op.shadow_count_ = 0;
  op.call_.count = 0;
  const rules::RuleSet& rules = snapshot_->rules();

  const identity::Target target = request.target.empty()
                                      ? identity::Target{}
                                      : identity::normalise_target(request.target, {}, path_);
  const auto host =
      identity::normalise_host(target.authority.empty() ? request.host : target.authority, host_);
  if (!target.ok() || !host) {
    ++counters_.bad_targets;
    return finish(op, Action::reject, Reason::bad_target, kBadRequest);
  }
  const rules::Asked asked{.request = request,
                           .domain = request.domain.empty() ? "default" : request.domain,
                           .host = *host,
                           .path = target.route(),
                           .query = target.query,
                           .client = client};

  // Before anybody is verified. These are counted here, whatever the store for the others is: they
  // protect this node from the cost of verifying.
  const Rule* lacking = nullptr;
  rules.match(asked, Phase::before_auth, matches_);
  const bool enforced_early = matches_.enforced;
  if (matches_.count > 0) {
    switch (resolve(op, asked, matches_, lacking)) {
      case Resolved::too_many:
        return finish(op, Action::reject, Reason::too_many_rules, kUnavailable);
      case Resolved::missing:
        return finish(op, Action::reject, Reason::missing_value, kForbidden, lacking);
      case Resolved::ready: break;
    }
    if (blocked(op, now)) return Completion::now;
    (void)fallback_.decide_all(op.call_, now);
    record(op, fallback_, false);
    if (!op.call_.admitted) {
      refuse(op, now);
      return Completion::now;
    }
    op.call_.count = 0;
  }

  client = verify();
  if (require_proof_ && !client.authenticated()) {
    return finish(op, Action::reject, Reason::unauthenticated, kUnauthorized);
  }
  rules.match(asked, Phase::after_auth, matches_);
  if (!matches_.enforced && !enforced_early) {
    if (rules.unmatched() == rules::Unmatched::reject) {
      return finish(op, Action::reject, Reason::no_rule, kUnavailable);
    }
    if (matches_.count == 0 && op.shadow_count_ == 0) {
      return finish(op, Action::pass, Reason::unmatched, 200);
    }
  }
  switch (resolve(op, asked, matches_, lacking)) {
    case Resolved::too_many:
      return finish(op, Action::reject, Reason::too_many_rules, kUnavailable);
    case Resolved::missing:
      return finish(op, Action::reject, Reason::missing_value, kForbidden, lacking);
    case Resolved::ready: break;
  }

  if (blocked(op, now)) return Completion::now;
  op.call_.completed = &Worker::later;
  op.call_.owner = &op;
  if (op.call_.count > 0 && store_.decide_all(op.call_, now) == Completion::later) {
    op.stage_ = Op::Stage::waiting;
    return Completion::later;
  }
  if (op.call_.count == 0) op.call_.admitted = true;
  conclude(op, store_, now);
  return Completion::now;
}

Completion Worker::finish(Op& op, Action action, Reason reason, std::uint16_t status,
                          const Rule* rule) noexcept {
  op.stage_ = Op::Stage::decided;
  op.action = action;
  op.reason = reason;
  op.status = status;
  op.rule = rule;
  op.decision = {};
  if (reason == Reason::too_many_rules) ++counters_.too_many_rules;
  ++(action == Action::pass ? counters_.passed : counters_.rejected);
  return Completion::now;
}

// Only what somebody vouches for chooses a limit. An address is given by the network.
std::string_view Worker::tier_of(const Rule& rule, const rules::Asked& asked,
                                 ValueScratch& scratch) noexcept {
  if (!rule.tiers) return {};
  const identity::Identity& client = asked.client;
  const std::string_view by = rule.tiers->by;
  if (by == "client.tier") return client.tier;
  if (by == "client.tenant") return client.tenant;
  if (by == "client.country") return client.country;
  if (by == "client.authenticated") return client.authenticated() ? "true" : "false";
  if (by == "client.asn") {
    const auto end = std::to_chars(scratch.data(), scratch.data() + scratch.size(), client.asn);
    return {scratch.data(), static_cast<std::size_t>(end.ptr - scratch.data())};
  }
  constexpr std::string_view kClaim = "claim.";
  if (!by.starts_with(kClaim) || client.claims == nullptr) return {};
  return client.claims->find(by.substr(kClaim.size()));
}

// The limits of every rule that concerns the request become checks; those of shadow rules apart.
Worker::Resolved Worker::resolve(Op& op, const rules::Asked& asked, const rules::Matches& matches,
                                 const Rule*& lacking) noexcept {
  if (matches.too_many) return Resolved::too_many;
  for (const rules::Matched& matched : matches.span()) {
    const Plan& plan = op.snapshot_->plan(matched.rule);
    const Rule& rule = *plan.rule;
    const Key key = key_of(plan, asked, matched, op.snapshot_->rules().path(matched));
    if (key.fate == Key::Fate::skipped) continue;
    if (key.fate == Key::Fate::refused && !is_shadow(rule)) {
      lacking = &rule;
      return Resolved::missing;
    }
    if (key.fate == Key::Fate::refused) continue;
    const store::Cost cost = cost_of(rule.cost, asked);
    ValueScratch scratch;
    for (const PlannedLimit& limit : plan.limits_for(tier_of(rule, asked, scratch))) {
      const store::Check check{
          .key = {.low = key.digest.low ^ limit.salt, .high = 0},
          .limit = limit.number,
          .cost = cost,
          .change = rule.on_change,
          .no_room = rule.no_room,
          .may_be_refunded =
              rule.count.has_value() || limit.written->limit.algorithm == Algorithm::concurrency,
          .scale = rule.scale};
      if (is_shadow(rule)) {
        if (op.shadow_count_ == Op::kMost) return Resolved::too_many;
        op.shadows_[op.shadow_count_] = {.plan = &plan, .limit = &limit, .key = key.digest.low};
        op.shadow_checks_[op.shadow_count_++] = check;
        continue;
      }
      if (op.call_.count == Op::kMost) return Resolved::too_many;
      op.asked_[op.call_.count] = {.plan = &plan, .limit = &limit, .key = key.digest.low};
      op.call_.checks[op.call_.count++] = check;
    }
  }
  return Resolved::ready;
}

// ---- answers ----------------------------------------------------------------------------------

void Worker::later(store::Call& call) noexcept {
  Op& op = *static_cast<Op*>(call.owner);
  if (op.stage_ != Op::Stage::waiting) return;  // nobody waits any more
  op.worker_->conclude(op, op.worker_->store_, op.asked_at_);
  if (op.completed != nullptr) op.completed(op);
}

// What the limits said, for headers and for people; and what they charged, to be settled.
void Worker::record(Op& op, store::Store& by, bool keep_charges) noexcept {
  for (std::size_t i = 0; i < op.call_.count; ++i) {
    const Op::Asked& asked = op.asked_[i];
    const store::Answer& answer = op.call_.answers[i];
    op.outcomes_[op.outcome_count_++] = {.rule = asked.plan->rule,
                                         .limit = asked.limit->written,
                                         .decision = answer.decision,
                                         .shadow = false};
    const bool in_flight = asked.limit->written->limit.algorithm == Algorithm::concurrency;
    if (!op.call_.admitted || !(keep_charges || in_flight)) continue;
    if (op.held_count_ == Op::kMost) continue;
    op.held_[op.held_count_++] = {.check = op.call_.checks[i],
                                  .charge = answer.charge,
                                  .rule = asked.plan->rule,
                                  .by = &by,
                                  .in_flight = in_flight};
  }
}

void Worker::conclude(Op& op, store::Store& by, Now now) noexcept {
  if (op.call_.failed) return give_up_waiting(op, now);
  record(op, by, true);
  if (!op.call_.admitted) return refuse(op, now);
  ask_shadows(op, now);
  (void)finish(op, Action::pass, Reason::allowed, 200);
  if (op.call_.count > 0) {
    op.rule = op.asked_[store::binding(op.call_.answered())].plan->rule;
    op.decision = store::binding_decision(op.call_.answered());
  }
}

void Worker::refuse(Op& op, Now now) noexcept {
  const std::size_t binding = store::binding(op.call_.answered());
  const Rule& rule = *op.asked_[binding].plan->rule;
  const Decision& decision = op.call_.answers[binding].decision;
  const bool drop = rule.over.kind == Over::Kind::drop;
  const Reason reason = decision.verdict == Verdict::never ? Reason::never : Reason::limited;
  (void)finish(op, drop ? Action::drop : Action::reject, reason, rule.over.status, &rule);
  op.decision = decision;
  punish(op, now);
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
  const Plan* previous = nullptr;
  for (std::size_t i = 0; i < op.call_.count; ++i) {
    const Op::Asked& asked = op.asked_[i];
    if (!asked.plan->block || asked.plan == previous) continue;  // once for all limits of a rule
    previous = asked.plan;
    const Decision& count = ask_alone(asked.plan->block->block, asked.key, 0, now);
    if (count.remaining > 0) continue;
    const Rule& rule = *asked.plan->rule;
    const bool drop = rule.over.kind == Over::Kind::drop;
    (void)finish(op, drop ? Action::drop : Action::reject, Reason::blocked, rule.over.status,
                 &rule);
    op.decision = {.verdict = Verdict::refused,
                   .limit = count.limit,
                   .remaining = 0,
                   .reset_after = count.reset_after,
                   .retry_after = count.reset_after};
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
    (void)ask_alone(asked.plan->block->block, asked.key, 1, now);
    ++counters_.blocks;
  }
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
                                         .decision = alone_.answers[0].decision,
                                         .shadow = true};
  }
}

// ---- when the store does not answer -----------------------------------------------------------

void Worker::give_up_waiting(Op& op, Now now) noexcept {
  ++counters_.store_failures;
  store_.cancel(op.call_);
  op.source = "fallback";
  // The strictest of the rules that are concerned: one that must not pass unknown is enough.
  bool closed = false;
  bool share = false;
  for (std::size_t i = 0; i < op.call_.count; ++i) {
    const Rule& rule = *op.asked_[i].plan->rule;
    closed |= rule.on_failure == rules::OnFailure::closed;
    share |= rule.on_failure == rules::OnFailure::share;
    if (rule.on_failure == rules::OnFailure::closed) op.rule = &rule;
  }
  if (closed) {
    (void)finish(op, Action::reject, Reason::store_failed, kUnavailable, op.rule);
    return;
  }
  if (!share) {
    (void)finish(op, Action::pass, Reason::store_failed, 200);
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

// ---- afterwards -------------------------------------------------------------------------------

void Worker::give_back(const Op::Held& held, Now now) noexcept {
  held.by->refund(held.check, held.charge, now);
}

void Worker::abandon(Op& op, Now now) noexcept {
  if (op.stage_ == Op::Stage::waiting) store_.cancel(op.call_);
  for (std::size_t i = 0; i < op.held_count_; ++i) give_back(op.held_[i], now);
  op.held_count_ = 0;
  op.stage_ = Op::Stage::idle;
  op.snapshot_.reset();
}

void Worker::settle(Op& op, const ResponseView* response, Now now) noexcept {
  for (std::size_t i = 0; i < op.held_count_; ++i) {
    const Op::Held& held = op.held_[i];
    const bool uncounted = response != nullptr && held.rule->count && !held.rule->count->after &&
                           !counts(*held.rule->count, *response);
    if (held.in_flight || uncounted) give_back(held, now);
  }
  op.held_count_ = 0;
  op.stage_ = Op::Stage::idle;
  op.snapshot_.reset();
}

void Worker::renew(Op& op, Now now) noexcept {
  for (std::size_t i = 0; i < op.held_count_; ++i) {
    Op::Held& held = op.held_[i];
    if (held.in_flight) held.charge = held.by->renew(held.check, held.charge, now);
  }
}

// More is charged although it can no longer be refused; less is given back.
void Worker::correct_cost(Op& op, store::Cost actual, Now now) noexcept {
  for (std::size_t i = 0; i < op.held_count_; ++i) {
    Op::Held& held = op.held_[i];
    if (held.in_flight || actual == held.check.cost) continue;
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
