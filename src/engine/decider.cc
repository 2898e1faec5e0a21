#include "engine/decider.h"

#include "base/byte_words.h"
#include "engine/http_statuses.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::engine {
namespace {

using rules::Phase;
using store::Completion;

// The identity before authentication.
identity::Identity unproven(const identity::Identity& client) noexcept {
  return {.address = client.address,
          .country = client.country,
          .asn = client.asn,
          .through_trusted = client.through_trusted};
}

// CORS preflight: a browser asks whether a page may send a request to another origin. Preflights
// never carry credentials.
[[gnu::noinline]] bool is_preflight(const rules::Asked& asked) noexcept {
  return asked.method == "OPTIONS" && asked.request.header("origin") &&
         asked.request.header("access-control-request-method");
}

}  // namespace

std::string_view to_string(Reason reason) noexcept {
  switch (reason) {
    case Reason::allowed: return "allowed";
    case Reason::unmatched: return "unmatched";
    case Reason::limited: return "limited";
    case Reason::never: return "never";
    case Reason::queue_full: return "queue_full";
    case Reason::blocked: return "blocked";
    case Reason::allow_listed: return "allow_listed";
    case Reason::preflight: return "preflight";
    case Reason::deny_listed: return "deny_listed";
    case Reason::missing_value: return "missing_value";
    case Reason::ambiguous_value: return "ambiguous_value";
    case Reason::unauthenticated: return "unauthenticated";
    case Reason::ambiguous_credentials: return "ambiguous_credentials";
    case Reason::no_rule: return "no_rule";
    case Reason::too_many_rules: return "too_many_rules";
    case Reason::bad_target: return "bad_target";
    case Reason::store_failed: return "store_failed";
  }
  return "unknown";
}

Decider::Decider(store::Store& store, store::Limits& limits)
    : store_(store), lists_(std::make_shared<const Lists>()), amounts_(limits) {}

Decider::~Decider() {
  for (Deciding* const shadow : late_shadows_) store_.cancel(shadow->call, shadow->asked_at);
}

// Keeps what the worker learnt while the same snapshot is in force: it is published again with
// every other change, such as certificates.
void Decider::use(std::shared_ptr<const Snapshot> snapshot) {
  if (pin_ != nullptr && pin_->snapshot == snapshot) return;
  if (pin_ != nullptr && pin_->ops > 0) retired_.push_back(std::move(pin_));
  std::erase_if(retired_, [](const auto& pin) { return pin->ops == 0; });
  amounts_.forget();
  prefetch_.forget();
  pin_ = std::make_unique<SnapshotPin>(SnapshotPin{.snapshot = std::move(snapshot)});
}

// ---- deciding ---------------------------------------------------------------------------------

Decided Decider::decide(Op& op, const RequestView& request, Now now) noexcept {
  const Prepared prepared = prepare(op, request, now);
  return {.completion = ask(op, prepared, now), .request = resolved_};
}

Decided Decider::decide(Op& op, const RequestView& request, const identity::Identity& client,
                        Now now) noexcept {
  resolved_.client = unproven(client);
  const Prepared prepared =
      prepare(op, request, now, [&](identity::Identity& who) { who = client; });
  return {.completion = ask(op, prepared, now), .request = resolved_};
}

Completion Decider::decide_by(rules::RuleNumber rule, Op& op, const RequestView& request,
                              const identity::Identity& client, Now now,
                              std::optional<store::Cost> cost) noexcept {
  begin(op, now);
  const std::size_t mark = std::min(request.target.find('?'), request.target.size());
  const std::string_view behind = request.target.substr(mark);
  identity::MethodScratch method;
  const rules::Asked asked{.request = request,
                           .method = identity::upper_method(request.method, method),
                           .domain = pin_->snapshot->rules().rules()[rule].domain,
                           .host = request.host,
                           .path = request.target.substr(0, mark),
                           .query = behind.empty() ? behind : behind.substr(1),
                           .client = client};
  matches_.clear();
  matches_.count = 1;
  matches_.all[0] = {.rule = rule};
  if (!resolve(op, asked, matches_)) return ask(op, Prepared::decided, now);
  if (cost) {
    Deciding& deciding = *op.deciding_;
    for (std::size_t i = 0; i < deciding.call.count; ++i) deciding.call.checks[i].cost = *cost;
    for (std::size_t i = 0; i < deciding.shadow_count; ++i) deciding.shadow_checks[i].cost = *cost;
  }
  const bool is_blocked = blocked(op, Early::not_done, now);
  return ask(op, is_blocked ? Prepared::decided : Prepared::to_be_asked, now);
}

void Decider::decide_batch(std::span<Op* const> ops, std::span<const RequestView> requests,
                           Now now) noexcept {
  constexpr std::size_t kAtOnce = 16;
  for (std::size_t first = 0; first < ops.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, ops.size() - first);
    std::array<Prepared, kAtOnce> prepared;
    for (std::size_t i = 0; i < count; ++i) {
      Op& op = *ops[first + i];
      prepared[i] = prepare(op, requests[first + i], now);
      if (prepared[i] != Prepared::to_be_asked) continue;
      for (const store::Check& check : op.deciding_->call.asked()) store_.expect(check.key);
    }
    for (std::size_t i = 0; i < count; ++i) (void)ask(*ops[first + i], prepared[i], now);
  }
}

Decider::Prepared Decider::prepare(Op& op, const RequestView& request, Now now) noexcept {
  identifier_->begin(request, resolved_.client);
  return prepare(op, request, now, [&](identity::Identity& who) {
    identifier_->prove(request, now, scratch_, who);
    counters_.failures_forgotten = scratch_.failures_forgotten();
  });
}

// Everything before the store is asked, for the client at the address in resolved_. `verify`
// identifies the client, after the rules that are charged before authentication.
template <class Verify>
Decider::Prepared Decider::prepare(Op& op, const RequestView& request, Now now,
                                   Verify&& verify) noexcept {
  begin(op, now);
  identity::Identity& client = resolved_.client;
  const rules::RuleSet& rules = pin_->snapshot->rules();
  identity::Target target = request.target.empty()
                                ? identity::Target{}
                                : identity::normalise_target(request.target, {}, path_);
  const auto host = normal_host(target.authority.empty() ? request.host : target.authority);
  if (!target.ok() || !host) return reject_target(op);
  if (rules.has_path_options() || target.has_escaped_slash) [[unlikely]] {
    if (!request.target.empty()) {
      target = identity::read_target(request.target, rules.path_options(*host),
                                     rules.escaped_slashes(*host), path_, decoded_path_);
    }
    if (!target.ok()) return reject_target(op);
  }
  resolved_.host = *host;
  resolved_.path = target.route();
  resolved_.decoded_path = target.decoded_route();
  identity::MethodScratch method;
  const rules::Asked asked{.request = request,
                           .method = identity::upper_method(request.method, method),
                           .domain = request.domain,
                           .host = *host,
                           .path = resolved_.path,
                           .query = target.query,
                           .client = client,
                           .decoded_path = resolved_.decoded_path};

  const bool has_lists = !lists_->empty();
  if (has_lists && is_listed(op, lists_->find(client.address, now.wall()))) {
    return Prepared::decided;
  }

  if (rules.has(Phase::blocks) && blocked_by_request(op, asked, now)) return Prepared::decided;

  const bool preflight = (policy_.require_auth || policy_.exempt_preflights) && is_preflight(asked);
  const bool exempt = preflight && policy_.exempt_preflights;

  // Before authentication. Counted on this node, whatever the store of the other rules is: these
  // rules protect this node from the cost of verifying.
  bool enforced = false;
  bool enforced_decoded = false;
  if (rules.has(Phase::before_auth) && !exempt) {
    rules.match(asked, Phase::before_auth, matches_);
    enforced = matches_.enforced;
    enforced_decoded = matches_.enforced_decoded;
    if (!resolve(op, asked, matches_) || blocked(op, Early::done, now)) return Prepared::decided;
    Deciding& deciding = *op.deciding_;
    if (deciding.call.count > 0) {
      (void)store_.decide_all(deciding.call, now);  // at once: these limits are local
      record(op, Keep::unfinished);
      if (!deciding.call.admitted) {
        refuse(op, now);
        return Prepared::decided;
      }
      deciding.early_count = deciding.call.count;
      deciding.call.clear();
    }
  }

  verify(client);
  if (client.proof == identity::Proof::ambiguous) {
    return finish(op, Action::reject, Reason::ambiguous_credentials, kBadRequest);
  }
  if (has_lists && is_listed(op, lists_->find(client, now.wall()))) return Prepared::decided;
  if (policy_.require_auth && !preflight && !client.authenticated()) {
    return finish(op, Action::reject, Reason::unauthenticated, kUnauthorized);
  }
  if (exempt) return prepare_exempt(op, asked, now);
  prefetch_.guess(asked, store_);
  rules.match(asked, Phase::after_auth, matches_);
  if (matches_.count > 0) prefetch_.learn(pin_->snapshot->plan(matches_.all[0].rule));
  enforced |= matches_.enforced;
  enforced_decoded |= matches_.enforced_decoded;
  if (!enforced || !enforced_decoded) {  // the upstream may use either of the two readings
    if (rules.unmatched() == rules::Unmatched::reject) {
      return finish(op, Action::reject, Reason::no_rule, kUnavailable);
    }
    if (!enforced && !enforced_decoded && matches_.count == 0 && op.deciding_->shadow_count == 0) {
      return finish(op, Action::pass, Reason::unmatched, kOk);
    }
  }
  if (!resolve(op, asked, matches_) || blocked(op, Early::done, now)) return Prepared::decided;
  return Prepared::to_be_asked;
}

Decider::Prepared Decider::reject_target(Op& op) noexcept {
  resolved_.host = resolved_.path = resolved_.decoded_path = {};
  return finish(op, Action::reject, Reason::bad_target, kBadRequest);
}

// Allowed uncounted, unless it is blocked.
Decider::Prepared Decider::prepare_exempt(Op& op, const rules::Asked& asked, Now now) noexcept {
  const rules::RuleSet& rules = pin_->snapshot->rules();
  for (const Phase phase : {Phase::before_auth, Phase::after_auth}) {
    if (!pin_->snapshot->has_blocks() || !rules.has(phase)) continue;
    rules.match(asked, phase, matches_);
    for (const rules::Matched& matched : matches_.span()) (void)resolve_rule(op, asked, matched);
    if (blocked(op, Early::done, now)) return Prepared::decided;
    op.deciding_->call.clear();
    op.deciding_->shadow_count = 0;
  }
  return finish(op, Action::pass, Reason::preflight, kOk);
}

std::optional<std::string_view> Decider::normal_host(std::string_view host) noexcept {
  if (same_bytes(host, {host_asked_.data(), host_asked_bytes_})) return host_normal_;
  if (host.size() > host_asked_.size()) return std::nullopt;
  host_asked_bytes_ = host.copy(host_asked_.data(), host.size());
  host_normal_ = identity::normalise_host({host_asked_.data(), host_asked_bytes_}, host_);
  return host_normal_;
}

// Ends the decision, unless the store completes it later.
Completion Decider::ask(Op& op, Prepared prepared, Now now) noexcept {
  if (prepared == Prepared::decided) {
    release(op);
    return Completion::now;
  }
  store::Call& call = op.deciding_->call;
  call.completed = &Decider::later;
  call.owner = &op;
  call.admitted = true;
  if (call.count > 0 && store_.decide_all(call, now) == Completion::later) {
    op.stage_ = Op::Stage::waiting;
    return Completion::later;
  }
  conclude(op, now);
  release(op);
  return Completion::now;
}

void Decider::begin(Op& op, Now now) noexcept {
  ++counters_.decided;
  ++pin_->ops;
  op.pin_ = pin_.get();
  op.worker_ = this;
  op.asked_at_ = now;
  op.source = store::Source::local;
  op.stage_ = Op::Stage::deciding;
  op.queued_ = nullptr;
  op.outcomes_.clear();
  op.held_.clear();
  op.uses_.clear();
  op.deciding_ = &pool_.take();
  op.deciding_->clear();
  prefetch_.begin();
}

void Decider::release(Op& op) noexcept {
  if (op.deciding_ == nullptr) return;
  pool_.give_back(*op.deciding_);
  op.deciding_ = nullptr;
}

// The op releases its rules. Retired rules without ops are freed at the next edit.
void Decider::end(Op& op) noexcept {
  if (op.pin_ == nullptr) return;
  --op.pin_->ops;
  op.pin_ = nullptr;
  op.held_.clear();
  for (Amounts::Use* const use : op.uses_) amounts_.let_go(*use);
  op.uses_.clear();
  op.stage_ = Op::Stage::idle;
}

Decider::Prepared Decider::finish(Op& op, Action action, Reason reason, std::uint16_t status,
                                  const rules::Rule* rule, const Decision& decision) noexcept {
  op.stage_ = Op::Stage::decided;
  op.action = action;
  op.reason = reason;
  op.status = status;
  op.rule = rule;
  op.decision = decision;
  if (reason == Reason::too_many_rules) ++counters_.too_many_rules;
  if (reason == Reason::bad_target) ++counters_.bad_targets;
  ++(action == Action::pass ? counters_.passed : counters_.rejected);
  return Prepared::decided;
}

bool Decider::is_listed(Op& op, const Lists::Answer& answer) noexcept {
  switch (answer.word) {
    case Lists::Word::none: return false;
    case Lists::Word::allow: finish(op, Action::pass, Reason::allow_listed, kOk); return true;
    case Lists::Word::deny:
      finish(op, Action::reject, Reason::deny_listed, kForbidden);
      return true;
  }
  return false;
}

}  // namespace sluice::engine
