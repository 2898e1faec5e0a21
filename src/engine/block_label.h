// Who a block is about, for people: "ip=203.0.113.7 path.id=42".
#pragma once

#include "rules/rule.h"

#include <span>
#include <string_view>

namespace sluice::engine {

// Writes what Worker::label_of captured. `per` is the rule's. What does not fit is left out; of
// values that may be secrets, headers and query fields, only the beginning is shown. No allocation.
[[nodiscard]] std::string_view write_label(std::string_view captured,
                                           std::span<const rules::Per> per,
                                           std::span<char> to) noexcept;

}  // namespace sluice::engine
