// The most that a limit admits, as `sluice check` promises it. Pure.
#pragma once

#include "engine/overrides.h"
#include "rules/rule.h"
#include <sluice/time.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace sluice::cli {

struct Bound {
  std::optional<std::uint64_t> most;  // absent: it limits nothing
  bool in_flight = false;             // and what is in flight besides, since it is charged later
};

// Of a client without an override, with the largest amount that `from` accepts; with a multiplier,
// of a client with that override.
[[nodiscard]] Bound bound_of(const rules::Rule& rule, const rules::RuleLimit& limit,
                             std::uint32_t permille = 1000);

// The most generous of the overrides that hold for some keys of the rule; null: none gives more
// than the rule.
[[nodiscard]] const engine::Override* most_generous(const rules::Rule& rule,
                                                    std::span<const engine::Override> overrides,
                                                    WallTime now) noexcept;

// "199 in any 1s", "3 in any 1h + in flight", "none (shadow)"
[[nodiscard]] std::string bound_text(const Bound& bound, const Limit& limit);

}  // namespace sluice::cli
