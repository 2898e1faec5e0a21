// A run against a server, for eyes and for programs.
#pragma once

#include "cli/load/http/conduct.h"
#include "cli/load/http/plan.h"
#include "cli/terminal.h"

#include <string>

namespace sluice::cli {

[[nodiscard]] std::string headline(const HttpPlan& plan);
[[nodiscard]] std::string report_text(const HttpPlan& plan, const HttpRun& run,
                                      const Output& style);
// One object on one line.
[[nodiscard]] std::string report_json(const HttpPlan& plan, const HttpRun& run);

}  // namespace sluice::cli
