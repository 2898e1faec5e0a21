// Counts decisions by rule, without looking a name up.
//
// Made once for each set of rules, on the control road; the same names count on where they were.
// Immutable, so workers share it, each with a shard of its own.
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

  // What every rule said that had a say, and why the request was refused if it was. The op is
  // decided and not settled yet.
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
  OfRule by_none_;                          // no rule had a say
  OfRule by_others_;                        // decided by rules of an earlier set
  std::vector<metrics::Counter> refusals_;  // by reason; of nothing for those that refuse nobody
};

}  // namespace sluice::frontend
