// A decision as JSON, the same in every command.
#pragma once

#include <sluice/decision.h>

#include <string>

namespace sluice::cli {

// "limit":3,"remaining":2,... without the braces; `retry_after_ns` is null when allowed or never.
[[nodiscard]] std::string decision_members(const Decision& decision);

}  // namespace sluice::cli
