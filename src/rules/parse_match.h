// `match` and `per`.
#pragma once

#include "rules/parse_context.h"
#include "rules/rule.h"

#include <vector>

namespace sluice::rules {

[[nodiscard]] Match parse_match(const config::Node& map, const ParseContext& context);

// Headers by name, in lower case, or names alone.
[[nodiscard]] std::vector<NamedMatch> parse_header_matches(const config::Node& node,
                                                           const ParseContext& context);

[[nodiscard]] std::vector<Per> parse_per_list(const config::Node& node,
                                              const ParseContext& context);

// `per: path.id` needs an {id} in every path of the match.
void check_path_parameters(const Match& match, const std::vector<Per>& per,
                           const config::Node& per_node, const ParseContext& context);

}  // namespace sluice::rules
