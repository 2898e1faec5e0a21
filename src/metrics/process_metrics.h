// What the operating system knows about this process, under the names that every dashboard expects.
#pragma once

#include "metrics/registry.h"

#include <string_view>

namespace sluice::metrics {

// All that a process can tell about itself; values are read from /proc whenever somebody looks.
void collect_process(Registry& registry);

// sluice_build_info: which build this is.
struct Build {
  std::string_view version;
  std::string_view revision;
};
void show_build(Registry& registry, const Build& build);

}  // namespace sluice::metrics
