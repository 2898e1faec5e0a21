#include "frontend/metrics/decision_counters.h"

#include "frontend/metrics/server_metrics.h"

#include <cstddef>
#include <functional>
#include <utility>

namespace sluice::frontend {
namespace {

using engine::Op;
using engine::Reason;
using metrics::Shard;

// The reasons for rejections.
constexpr std::array kReasons{
    Reason::limited,         Reason::never,
    Reason::queue_full,      Reason::blocked,
    Reason::deny_listed,     Reason::missing_value,
    Reason::ambiguous_value, Reason::no_rule,
    Reason::unauthenticated, Reason::ambiguous_credentials,
    Reason::too_many_rules,  Reason::bad_target,
    Reason::store_failed,
};
constexpr std::size_t kAllReasons = static_cast<std::size_t>(Reason::store_failed) + 1;

DecisionWord word_of(bool allowed, bool shadow) noexcept {
  if (allowed) return DecisionWord::allowed;
  return shadow ? DecisionWord::shadow_rejected : DecisionWord::rejected;
}

}  // namespace

DecisionCounters::OfRule::OfRule(metrics::Registry& registry, std::string_view domain,
                                 std::string_view rule)
    : hits(registry.counter(kHits, {domain, rule})) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] =
        registry.counter(kDecisions, {domain, rule, to_string(static_cast<DecisionWord>(i))});
  }
}

DecisionCounters::DecisionCounters(metrics::Registry& registry,
                                   std::shared_ptr<const rules::RuleSet> rules)
    : rules_(std::move(rules)),
      by_none_(registry, "", ""),
      by_others_(registry, metrics::kOther, metrics::kOther) {
  for (const rules::Rule& rule : rules_->rules()) {
    by_rule_.emplace_back(registry, rule.domain, rule.name);
  }
  refusals_.resize(kAllReasons);
  for (const Reason reason : kReasons) {
    refusals_[static_cast<std::size_t>(reason)] =
        registry.counter(kRejections, {engine::to_string(reason)});
  }
}

const DecisionCounters::OfRule& DecisionCounters::of(const rules::Rule* rule) const noexcept {
  if (rule == nullptr) return by_none_;
  const std::span<const rules::Rule> rules = rules_->rules();
  // The op's rules may have been replaced since. Only std::less orders unrelated pointers.
  const std::less<> before;
  if (before(rule, rules.data()) || !before(rule, rules.data() + rules.size())) return by_others_;
  return by_rule_[static_cast<std::size_t>(rule - rules.data())];
}

void DecisionCounters::add(Shard shard, const rules::Rule* rule, DecisionWord word) const noexcept {
  of(rule).words[static_cast<std::size_t>(word)].add(shard);
}

void DecisionCounters::count(Shard shard, const Op& op) const noexcept {
  if (op.action != engine::Action::pass) {
    refusals_[static_cast<std::size_t>(op.reason)].add(shard);
  }
  // The limits of a rule are adjacent, and the rule allows what all of them allow.
  bool binding_had_a_say = false;
  for (std::size_t i = 0; i < op.limits().size();) {
    const engine::LimitOutcome& first = op.limits()[i];
    bool allowed = true;
    for (; i < op.limits().size() && op.limits()[i].rule == first.rule; ++i) {
      allowed &= op.limits()[i].decision.allowed();
    }
    // A full queue rejects requests that its limit would have queued.
    if (op.reason == Reason::queue_full && first.rule == op.rule) allowed = false;
    add(shard, first.rule, word_of(allowed, first.shadow));
    of(first.rule).hits.add(shard, first.cost);
    binding_had_a_say |= first.rule == op.rule;
  }
  // A block, a list or a failure decides without limits, though other rules may have used theirs.
  const bool is_decided_apart =
      op.limits().empty() || op.action != engine::Action::pass || op.reason == Reason::store_failed;
  if (is_decided_apart && !binding_had_a_say) add(shard, op.rule, decision_word(op));
}

}  // namespace sluice::frontend
