#include "cli/replay/order_watch.h"

#include "base/duration.h"
#include "cli/terminal.h"

#include <fmt/format.h>

namespace sluice::cli {

void OrderWatch::note(std::string_view meaning) const {
  if (out_of_order_ == 0) return;
  const std::string who =
      out_of_order_ == 1 ? "1 request lies" : fmt::format("{} requests lie", out_of_order_);
  complain("replay", fmt::format("note: {} before an earlier line (by up to {}); {}", who,
                                 format_duration(largest_step_), meaning));
}

}  // namespace sluice::cli
