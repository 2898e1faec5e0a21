// `limit` and `tiers`.
#pragma once

#include "rules/parse_context.h"
#include "rules/rule.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::rules {

// A rule's options for its limits.
struct LimitDefaults {
  // For limits that are written as plain text.
  std::optional<Algorithm> algorithm;
  std::optional<std::uint64_t> burst;
  std::optional<Refill> refill;
  std::optional<Align> align;
  std::optional<std::string> timezone;
  std::optional<Nanos> bucket_width;
  // For all limits.
  bool count_rejected = false;
  std::optional<Nanos> max_delay;  // of `action: {queue}`

  [[nodiscard]] bool any_for_plain_text() const noexcept {
    return algorithm || burst || refill || align || timezone || bucket_width;
  }
};

[[nodiscard]] LimitDefaults parse_limit_defaults(const config::Reader& rule);

// Every returned limit can be enforced. Of two limits with the same key the second is reported.
[[nodiscard]] std::vector<RuleLimit> parse_limits(const config::Node& node,
                                                  const LimitDefaults& defaults,
                                                  const ParseContext& context);

[[nodiscard]] Tiers parse_tiers(const config::Node& map, const LimitDefaults& defaults,
                                const ParseContext& context);

// Whether a limit of the list, or of a tier, is written as plain text.
[[nodiscard]] bool has_plain_text(const config::Node& limits);

// Equal for limits that would share a key: a name, or else algorithm, period and their options.
// Neither amount nor burst is part of it.
[[nodiscard]] std::string limit_identity(const RuleLimit& limit);

}  // namespace sluice::rules
