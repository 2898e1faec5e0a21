// A part of `per`, as written in rules.
#pragma once

#include "rules/rule.h"

#include <string>

namespace sluice::rules {

[[nodiscard]] std::string per_text(const Per& per);  // ip/24, header.x-team

}  // namespace sluice::rules
