// Whether the table has room for the limits of a configuration, before it is opened.
#pragma once

#include "embed/config/engine_configuration.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <cstddef>

namespace sluice::embed {

// The number of limits that the table has to know at once: equal limits share one. Fails if no
// table of any size would do, as for a multiplier that is too large for a limit.
[[nodiscard]] Parsed<std::size_t> distinct_limits(const EngineConfiguration& configuration,
                                                  Now now);

// The mistake, and how much memory would do.
[[nodiscard]] Parsed<void> check_room(const EngineConfiguration& configuration, Now now);

}  // namespace sluice::embed
