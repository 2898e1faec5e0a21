// A run from its beginning to its end: all threads start together, and one observes them.
#pragma once

#include "cli/load/http/load_driver.h"
#include "cli/load/http/plan.h"
#include "cli/load/http/tally.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <functional>

namespace sluice::cli {

struct HttpRun {
  Tally tally;
  Nanos elapsed{0};      // from the beginning to the last ending, at least as long as the schedule
  Nanos offered_for{0};  // how much of the schedule was gone through
  bool interrupted = false;
};

struct RunView {
  Nanos elapsed{0};
  LoadDriver::Live counts;
};

// Called some times a second. Returning false ends the run.
using RunWatcher = std::function<bool(const RunView& view)>;

[[nodiscard]] Parsed<HttpRun> conduct(const HttpPlan& plan, const net::SocketAddress& address,
                                      const Clock& clock, const RunWatcher& watch);

}  // namespace sluice::cli
