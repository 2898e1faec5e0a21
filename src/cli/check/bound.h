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
  bool in_flight = false;             // and what is under way besides, since it is charged later
  std::uint32_t permille = 1000;      // by the override that gives most
};

// Whoever brings the largest amount that `from` takes, or has the most generous of the overrides
// that hold.
[[nodiscard]] Bound bound_of(const rules::Rule& rule, const rules::RuleLimit& limit,
                             std::span<const engine::Override> overrides, WallTime now);

// "199 in any 1s", "3 in any 1h + in flight", "none (shadow)"
[[nodiscard]] std::string bound_text(const Bound& bound, const Limit& limit);

}  // namespace sluice::cli
