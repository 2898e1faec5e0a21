// From YAML to rules: reports every mistake, at its place, in one pass.
//
// The structure is checked against the grammar (rule_grammar.h), then each rule is read and checked
// as a whole. The result lacks rules with mistakes, so do not use a list from a file with mistakes:
// see the diagnostics.
#pragma once

#include "config/diagnostics.h"
#include "config/document.h"
#include "config/grammar.h"
#include "rules/rule.h"

#include <string_view>

namespace sluice::rules {

// A whole file of rules.
[[nodiscard]] RuleList parse_rules(const config::Document& document,
                                   config::Diagnostics& diagnostics);
[[nodiscard]] RuleList parse_rules_text(std::string_view text, std::string_view file,
                                        config::Diagnostics& diagnostics);

// The keys of rules_file_section() in a map that was checked as part of a larger grammar, whose
// section includes them.
[[nodiscard]] RuleList read_rules(const config::Node& map, const config::Checked& checked,
                                  config::Diagnostics& diagnostics);

}  // namespace sluice::rules
