// Rules, ready for requests: every limit has its number in the store, every rule its way to keys.
//
// Immutable. Whoever decides holds a reference, so that an edit never pulls a rule from under a
// request; the last one to let go gives the numbers back to the store.
#pragma once

#include "base/digest.h"
#include "rules/rule_set.h"
#include "store/store.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::engine {

struct PlannedLimit {
  store::LimitNumber number = 0;
  std::uint64_t salt = 0;  // tells the keys of a rule's limits apart: of rules::limit_identity
  const rules::RuleLimit* written = nullptr;
};

// A penalty box is two counts of the same key, kept like all others: refusals since the first of
// them, and one that is used up for as long as the block lasts. The refusals' window has ended when
// the block has, since it began before: so a block takes as many refusals each time.
struct PlannedBlock {
  PlannedLimit refusals;
  PlannedLimit block;
};

// What a rule comes down to when it concerns a request.
struct Plan {
  const rules::Rule* rule = nullptr;
  std::vector<PlannedLimit> limits;
  // Instead, for clients of some tier. In the order of the file.
  std::vector<std::pair<std::string, std::vector<PlannedLimit>>> tiers;

  std::optional<PlannedBlock> block;
  KeyDigest prefix;                 // of all keys of the rule
  std::optional<KeyHasher> hasher;  // rules with one `per`: by its value

  [[nodiscard]] std::span<const PlannedLimit> limits_for(std::string_view tier) const noexcept;
};

// What stands in digests before the values of `per`, whose kinds are the numbers of rules::Per.
// They go into keys: they stay.
enum class KeyPart : std::uint8_t { domain = 100, rule = 101, limit = 102, shared = 103 };

class Snapshot {
 public:
  // Fails when the store has no room for the limits.
  [[nodiscard]] static Parsed<std::shared_ptr<const Snapshot>> make(rules::RuleList list,
                                                                    store::Store& store, Now now);
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot();

  [[nodiscard]] const rules::RuleSet& rules() const noexcept { return rules_; }
  [[nodiscard]] const Plan& plan(rules::RuleNumber rule) const noexcept { return plans_[rule]; }

 private:
  Snapshot(rules::RuleList list, store::Store& store);
  [[nodiscard]] Parsed<void> plan_all(Now now);
  [[nodiscard]] Parsed<PlannedLimit> planned(const rules::Rule& rule, const Limit& limit,
                                             std::string_view identity, Now now);
  [[nodiscard]] Parsed<std::vector<PlannedLimit>> planned(const rules::Rule& rule,
                                                          std::span<const rules::RuleLimit> limits,
                                                          Now now);

  [[nodiscard]] Parsed<std::optional<PlannedBlock>> planned_block(const rules::Rule& rule, Now now);

  store::Store& store_;
  rules::RuleSet rules_;
  std::vector<Plan> plans_;
  std::vector<store::LimitNumber> used_;
};

}  // namespace sluice::engine
