// What a rule counts by, as people write it.
#pragma once

#include "rules/rule.h"

#include <string>

namespace sluice::rules {

[[nodiscard]] std::string per_text(const Per& per);  // ip/24, header.x-team

}  // namespace sluice::rules
