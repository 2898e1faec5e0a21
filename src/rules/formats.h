// The kinds of text in the rule language, and how each is parsed.
#pragma once

#include "config/grammar.h"
#include "rules/rule.h"
#include <sluice/diagnostic.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::rules {

// Each accepts exactly the texts that the function of the same name below parses.
extern const config::Format kNameFormat;  // of rules, limits, groups, tiers
extern const config::Format kDomainFormat;
extern const config::Format kMethodFormat;
extern const config::Format kHostFormat;
extern const config::Format kPathFormat;
extern const config::Format kHeaderNameFormat;
extern const config::Format kFieldNameFormat;  // of cookies, query fields, claims, entries
extern const config::Format kHeaderValueFormat;
extern const config::Format kAddressFormat;
extern const config::Format kCountryFormat;
extern const config::Format kPerFormat;
extern const config::Format kTierByFormat;
extern const config::Format kRateFormat;
extern const config::Format kDurationFormat;
extern const config::Format kStatusFormat;
extern const config::Format kPercentFormat;
extern const config::Format kRegexFormat;
extern const config::Format kTimezoneFormat;
extern const config::Format kBodyFormat;

using StatusRange = std::pair<std::uint16_t, std::uint16_t>;

[[nodiscard]] Parsed<Per> parse_per(std::string_view text);                 // ip/24, header.x-team
[[nodiscard]] Parsed<StatusRange> parse_status(std::string_view text);      // 401, 500-599, 5xx
[[nodiscard]] Parsed<std::uint32_t> parse_permille(std::string_view text);  // 5%, 0.5%
[[nodiscard]] Parsed<IpRange> parse_address_range(std::string_view text);

[[nodiscard]] std::string lower_case(std::string_view text);
// As hosts of requests are compared: in lower case, without a trailing dot.
[[nodiscard]] std::string host_name(std::string_view text);
[[nodiscard]] std::string upper_case(std::string_view text);

}  // namespace sluice::rules
