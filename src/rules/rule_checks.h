// Keys of a rule that are valid alone and make no sense together.
#pragma once

#include "rules/parse_context.h"
#include "rules/rule.h"

#include <vector>

namespace sluice::rules {

// Reports at the key concerned; `reader` is of the rule's map.
void check_rule(const Rule& rule, const config::Reader& reader, const ParseContext& context);

// Rules with their maps, in one order: names that occur twice, groups across phases.
struct WrittenRule {
  const Rule* rule;
  const config::Node* node;
};
void check_rules_together(const std::vector<WrittenRule>& rules, const ParseContext& context);

// A path with capitals is ambiguous if only some hosts ignore case.
void check_case(const std::vector<WrittenRule>& rules, const IgnoringHosts& ignore,
                const ParseContext& context);

// A path with a parameter never matches on hosts that ignore parameters.
void check_parameters(const std::vector<WrittenRule>& rules, const IgnoringHosts& ignore,
                      const ParseContext& context);

// Templates with %2F or %5C, if hosts do not distinguish these from slashes.
void check_escaped_slashes(const std::vector<WrittenRule>& rules, const SlashesByHost& slashes,
                           const ParseContext& context);

// Paths like /api/ and /, which look like prefixes.
void check_prefixes(const std::vector<WrittenRule>& rules, const ParseContext& context);

}  // namespace sluice::rules
