// Counts decisions by rule, without looking up names.
//
// Made once for each set of rules, off the request path; known names keep their counters.
// Immutable, so workers share it, each with its own shard.
#pragma once

#include "engine/op.h"
#include "frontend/access_log/decision_word.h"
#include "metrics/registry.h"
#include "rules/rule_set.h"

#include <array>
#include <memory>
#include <vector>

namespace sluice::frontend {

class DecisionCounters {
 public:
  DecisionCounters(metrics::Registry& registry, std::shared_ptr<const rules::RuleSet> rules);

  // Counts the decision of every rule involved, and the reason of a rejection. The op is decided
  // and not settled yet.
  void count(metrics::Shard shard, const engine::Op& op) const noexcept;

 private:
  struct OfRule {
    OfRule(metrics::Registry& registry, std::string_view domain, std::string_view rule);

    std::array<metrics::Counter, kDecisionWords> words;
    metrics::Counter hits;
  };

  [[nodiscard]] const OfRule& of(const rules::Rule* rule) const noexcept;
  void add(metrics::Shard shard, const rules::Rule* rule, DecisionWord word) const noexcept;

  std::shared_ptr<const rules::RuleSet> rules_;
  std::vector<OfRule> by_rule_;             // in the order of the rules
  OfRule by_none_;                          // no rule decided
  OfRule by_others_;                        // decided by rules of an earlier set
  std::vector<metrics::Counter> refusals_;  // by reason; empty for reasons that never reject
};

}  // namespace sluice::frontend
