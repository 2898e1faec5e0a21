// Rules, ready for requests: every limit has its number in the store's registry, every rule its key
// prefix.
//
// Immutable. Deciders own references, so an edit never removes a rule from a request in flight. The
// last reference returns the numbers to the registry, which outlives it.
#pragma once

#include "base/digest.h"
#include "base/flat_map.h"
#include "engine/overrides.h"
#include "engine/subject.h"
#include "rules/rule_set.h"
#include "rules/text_matcher.h"
#include "store/limits.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <atomic>
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
  std::uint32_t index = 0;  // in the whole snapshot
  std::uint64_t salt = 0;   // separates the keys of a rule's limits: of rules::limit_identity
  const rules::RuleLimit* written = nullptr;
};

// A penalty box is two counts of the same key, stored like all others: rejections since the first
// of them, and a count that is exhausted while the block lasts. The rejections' window starts
// before the block and ends by its end: so each block takes as many rejections.
struct PlannedBlock {
  PlannedLimit refusals;
  PlannedLimit block;
};

// The value that selects the tier of a rule.
enum class TierBy : std::uint8_t {
  none,
  tier,
  tenant,
  country,
  asn,
  authenticated,
  claim,
  attribute,
};

// A rule, prepared for the requests that it matches.
struct Plan {
  const rules::Rule* rule = nullptr;
  Sharing sharing;         // of its limits; its blocks are of this node
  bool is_shared = false;  // its keys are 128 bits, under the cluster's secret
  std::vector<PlannedLimit> limits;
  TierBy tier_by = TierBy::none;
  std::string tier_name;  // of the claim or the attribute
  // Replace `limits` for clients of a tier. In the order of the file.
  std::vector<std::pair<std::string, std::vector<PlannedLimit>>> tiers;

  OnChange change = OnChange::keep;  // for counts of another limit
  std::optional<PlannedBlock> block;
  bool blocks_early = false;                       // see rules::blocks_early
  std::optional<rules::TextMatcher> count_header;  // of responses that count
  // Requests queued, on all workers, including requests queued under earlier editions.
  std::shared_ptr<std::atomic<std::uint32_t>> held;
  KeyDigest prefix;                 // of all keys of the rule
  std::optional<KeyHasher> hasher;  // rules with one `per`: by its value

  [[nodiscard]] std::span<const PlannedLimit> limits_for(std::string_view tier) const noexcept;
};

// Kinds of the parts before the values of `per` in digests; values have the numbers of rules::Per.
// They are in keys: never change them.
enum class KeyPart : std::uint8_t {
  domain = 100,
  rule = 101,
  limit = 102,
  shared = 103,
  edition = 104,  // of rules whose counts restart when edited
};

class Snapshot {
 public:
  // Fails when the store has no room for the limits, or an override exceeds what can be enforced.
  // `before` is the replaced snapshot, if any: requests queued there keep their places here.
  [[nodiscard]] static Parsed<std::shared_ptr<const Snapshot>> make(
      std::shared_ptr<const rules::RuleSet> rules, std::vector<Override> overrides,
      store::Limits& registry, Now now, const Snapshot* before = nullptr);
  [[nodiscard]] static Parsed<std::shared_ptr<const Snapshot>> make(rules::RuleList list,
                                                                    store::Limits& registry,
                                                                    Now now) {
    return make(std::make_shared<const rules::RuleSet>(std::move(list)), {}, registry, now);
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot();

  [[nodiscard]] const rules::RuleSet& rules() const noexcept { return *rules_; }
  [[nodiscard]] const std::shared_ptr<const rules::RuleSet>& shared_rules() const noexcept {
    return rules_;
  }
  [[nodiscard]] const Plan& plan(rules::RuleNumber rule) const noexcept { return plans_[rule]; }
  [[nodiscard]] bool has_blocks() const noexcept { return has_blocks_; }  // any rule may block
  [[nodiscard]] std::span<const Override> overrides() const noexcept { return overrides_; }

  // The override for a client under a rule; null: none.
  [[nodiscard]] const Override* override_for(const rules::Rule& rule,
                                             const identity::Identity& client,
                                             WallTime now) const noexcept;
  // The number of a limit under an override.
  [[nodiscard]] store::LimitNumber number(const PlannedLimit& limit,
                                          const Override& changed) const noexcept;

 private:
  Snapshot(std::shared_ptr<const rules::RuleSet> rules, std::vector<Override> overrides,
           store::Limits& registry);
  [[nodiscard]] Parsed<void> plan_all(Now now);
  [[nodiscard]] DigestSecret secret_for(bool is_shared) const noexcept;
  void keep_queues_of(const Snapshot& before) noexcept;
  [[nodiscard]] Parsed<Plan> planned(const rules::Rule& rule, Now now);
  [[nodiscard]] Parsed<std::vector<PlannedLimit>> planned(const rules::Rule& rule,
                                                          const Sharing& sharing,
                                                          std::span<const rules::RuleLimit> limits,
                                                          Now now);
  [[nodiscard]] Parsed<PlannedLimit> planned(const rules::Rule& rule, const Limit& limit,
                                             const Sharing& sharing, std::string_view identity,
                                             Now now);
  [[nodiscard]] Parsed<std::optional<PlannedBlock>> planned_block(const rules::Rule& rule, Now now);
  [[nodiscard]] Parsed<void> plan_overrides(Now now);
  [[nodiscard]] Parsed<void> plan_override(std::uint32_t permille, const Plan& plan,
                                           std::span<const PlannedLimit> limits, Now now);
  [[nodiscard]] Parsed<store::LimitNumber> used(const rules::Rule& rule, const Limit& limit,
                                                const Sharing& sharing, Now now);

  store::Limits& registry_;
  std::shared_ptr<const rules::RuleSet> rules_;
  std::vector<Plan> plans_;
  bool has_blocks_ = false;
  std::uint32_t limits_ = 0;  // planned ones
  std::vector<store::LimitNumber> used_;

  std::vector<Override> overrides_;
  SubjectIndex overridden_;  // numbers of overrides
  // By multiplier, by the index of the limit. Few multipliers exist at a time.
  FlatMap<std::uint32_t, std::vector<store::LimitNumber>> multiplied_;
};

}  // namespace sluice::engine
