// The rule language: its keys, the values of each, and their meaning.
//
// The parser, the schema and the reference all come from here. To add a key, add one entry in a
// section and the line of the parser that reads it. A test finds a key that only one of them knows.
#pragma once

#include "config/grammar.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::rules {

inline constexpr std::uint64_t kCostMax = 1'000'000'000;

// A rules file: `rules` and the keys beside them. Other files can include its keys.
[[nodiscard]] const config::Section& rules_file_section();

[[nodiscard]] const config::Section& max_rules_section();
[[nodiscard]] const config::Section& escaped_slashes_section();
[[nodiscard]] const config::Section& escaped_slashes_hosts_section();
[[nodiscard]] const config::Section& rule_section();
[[nodiscard]] const config::Section& match_section();
[[nodiscard]] const config::Section& header_match_section();  // names of headers to their values
[[nodiscard]] const config::Section& field_match_section();   // cookies, query fields, ...
[[nodiscard]] const config::Section& text_match_section();
[[nodiscard]] const config::Section& limit_section();
[[nodiscard]] const config::Section& from_section();
[[nodiscard]] const config::Section& tiers_section();
[[nodiscard]] const config::Section& tier_values_section();
[[nodiscard]] const config::Section& cost_section();
[[nodiscard]] const config::Section& method_costs_section();
[[nodiscard]] const config::Section& count_section();
[[nodiscard]] const config::Section& action_section();
[[nodiscard]] const config::Section& queue_section();
[[nodiscard]] const config::Section& reject_section();
[[nodiscard]] const config::Section& reject_headers_section();
[[nodiscard]] const config::Section& block_section();

// What people of nginx write in rules and limits.
inline constexpr std::string_view kZoneRemedy =
    "'per' names what gets its own counter, and state.memory is the memory of all counters; a "
    "time zone is called 'timezone'";
inline constexpr std::string_view kNoDelayRemedy =
    "leave it out: requests within 'burst' are not delayed";

// The values of `limit` and of each tier.
[[nodiscard]] config::Shape limits_shape();

// The whole language.
[[nodiscard]] config::Shape rules_file_shape();

[[nodiscard]] std::string rules_schema();              // JSON Schema, draft 2020-12
[[nodiscard]] std::string rules_reference_markdown();  // a table for each section

}  // namespace sluice::rules
