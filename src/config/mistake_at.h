// A mistake that is told later, with the line that it stands in.
#pragma once

#include "config/diagnostics.h"

#include <string>

namespace sluice::config {

[[nodiscard]] Mistake mistake_at(const Node& at, Severity severity, std::string message,
                                 std::string remedy);

}  // namespace sluice::config
