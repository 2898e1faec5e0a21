// Who a block is about, for people: "ip=203.0.113.7 path.id=42", and "domain=edge" if it is not the
// default one.
#pragma once

#include "rules/rule.h"

#include <span>
#include <string_view>

namespace sluice::engine {

// Writes what Decider::label_of captured for the rule. What does not fit is left out; of values
// that may be secrets, headers and query fields, only the beginning is shown. No allocation.
[[nodiscard]] std::string_view write_label(std::string_view captured, const rules::Rule& rule,
                                           std::span<char> to) noexcept;

}  // namespace sluice::engine
