// The subject of a block, for people: "ip=203.0.113.7 path.id=42", and "domain=edge" if it is not
// the default one.
#pragma once

#include "rules/rule.h"

#include <span>
#include <string_view>

namespace sluice::engine {

// Writes the values that Decider::label_of captured for the rule, as far as they fit. Of possible
// secrets (headers and query fields) it shows only the beginning. No allocation.
[[nodiscard]] std::string_view write_label(std::string_view captured, const rules::Rule& rule,
                                           std::span<char> to) noexcept;

}  // namespace sluice::engine
