// The report as operators get it from the admin listener.
#pragma once

#include "frontend/status_report.h"

#include <string>

namespace sluice::admin {

// One object; fields are added, never renamed.
[[nodiscard]] std::string status_json(const frontend::StatusReport& report);

}  // namespace sluice::admin
