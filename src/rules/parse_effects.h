// The cost of a request, which responses count, and the action over the limit.
#pragma once

#include "rules/parse_context.h"
#include "rules/rule.h"

namespace sluice::rules {

[[nodiscard]] CostRule parse_cost(const config::Node& node, const ParseContext& context);
[[nodiscard]] Count parse_count(const config::Node& map, const ParseContext& context);
[[nodiscard]] Action parse_action(const config::Node& node, const ParseContext& context);
[[nodiscard]] Block parse_block(const config::Node& map, const ParseContext& context);

}  // namespace sluice::rules
