// What the operating system knows about this process, under the names that every dashboard expects.
#pragma once

#include "metrics/registry.h"

#include <string_view>

namespace sluice::metrics {

// Metrics of the process; values are read from /proc at each scrape.
void collect_process(Registry& registry);

// sluice_build_info: which build this is.
struct Build {
  std::string_view version;
  std::string_view revision;
};
void show_build(Registry& registry, const Build& build);

}  // namespace sluice::metrics
