// From a matching rule to the counted key.
#pragma once

#include "engine/snapshot.h"
#include "rules/rule_set.h"
#include "store/check.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::engine {

struct Key {
  enum class Fate : std::uint8_t {
    counted,    // under this digest
    skipped,    // a value is missing: the rule does not apply
    refused,    // a value is missing: the rule rejects
    ambiguous,  // a value is stated twice, differently
  };
  Fate fate = Fate::counted;
  Digest digest;
};

// The values that `per` names, with replacements for missing ones. No allocation.
[[nodiscard]] Key key_of(const Plan& plan, const rules::Asked& asked,
                         const rules::MatchedPath& path) noexcept;

// One value as it goes into the key. Empty: missing, or stated twice, differently: the upstream may
// take another one than we do, so a client could vary the counted value and keep the used one. Some
// are written to the scratch.
using ValueScratch = std::array<char, 1024>;
[[nodiscard]] std::string_view value_of(const rules::Per& per, const rules::Asked& asked,
                                        const rules::MatchedPath& path,
                                        ValueScratch& scratch) noexcept;

// For a value that value_of() finds empty: whether it is stated twice, differently.
[[nodiscard]] bool is_ambiguous(const rules::Per& per, const rules::Asked& asked) noexcept;

// The cost that the request states, for rules whose cost is not constant. The largest, if it states
// several.
[[nodiscard]] store::Cost stated_cost(const rules::CostRule& cost,
                                      const rules::Asked& asked) noexcept;
// The cost of a request under a rule.
[[nodiscard]] inline store::Cost cost_of(const rules::CostRule& cost,
                                         const rules::Asked& asked) noexcept {
  return cost.kind == rules::CostRule::Kind::constant ? cost.constant : stated_cost(cost, asked);
}

}  // namespace sluice::engine
