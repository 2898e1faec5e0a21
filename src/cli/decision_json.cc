#include "cli/decision_json.h"

#include <fmt/format.h>

namespace sluice::cli {

std::string decision_members(const Decision& decision) {
  const std::string retry =
      decision.retry_after ? fmt::format("{}", decision.retry_after->count()) : "null";
  return fmt::format(
      R"("limit":{},"remaining":{},"reset_after_ns":{},"retry_after_ns":{},"delay_ns":{})",
      decision.limit, decision.remaining, decision.reset_after.count(), retry,
      decision.delay.count());
}

}  // namespace sluice::cli
