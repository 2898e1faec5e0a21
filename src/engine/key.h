// From a rule that concerns a request to the key that is counted.
#pragma once

#include "engine/snapshot.h"
#include "rules/rule_set.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::engine {

struct Key {
  enum class Fate : std::uint8_t {
    counted,    // under this digest
    skipped,    // a value is missing, and then the rule does not apply
    refused,    // a value is missing, and the rule rejects then
    ambiguous,  // a value is stated twice, differently
  };
  Fate fate = Fate::counted;
  Digest digest;
};

// The values that `per` names, with replacements for missing ones. No allocation.
[[nodiscard]] Key key_of(const Plan& plan, const rules::Asked& asked,
                         const rules::MatchedPath& path) noexcept;

// One value as it goes into the key; empty: missing, or stated twice, differently: the server
// behind may take another one than we do, so that a client could vary what is counted and keep what
// is used. Some are written to the scratch.
using ValueScratch = std::array<char, 1024>;
[[nodiscard]] std::string_view value_of(const rules::Per& per, const rules::Asked& asked,
                                        const rules::MatchedPath& path,
                                        ValueScratch& scratch) noexcept;

// Of a value that value_of() finds empty: whether it is stated twice, differently.
[[nodiscard]] bool is_ambiguous(const rules::Per& per, const rules::Asked& asked) noexcept;

// By what the request says, for rules whose cost is not constant. If it says several things, the
// largest of them.
[[nodiscard]] store::Cost stated_cost(const rules::CostRule& cost,
                                      const rules::Asked& asked) noexcept;
// How much a request costs under a rule.
[[nodiscard]] inline store::Cost cost_of(const rules::CostRule& cost,
                                         const rules::Asked& asked) noexcept {
  return cost.kind == rules::CostRule::Kind::constant ? cost.constant : stated_cost(cost, asked);
}

}  // namespace sluice::engine
