// Whether the table has room for the limits of a configuration, told before it is opened.
#pragma once

#include "embed/config/engine_configuration.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <cstddef>

namespace sluice::embed {

// As many as the table has to know at once: limits that say the same share one. Fails where no
// table of any size would do, as for a multiplier that is too large for a limit.
[[nodiscard]] Parsed<std::size_t> distinct_limits(const EngineConfiguration& configuration,
                                                  Now now);

// What is wrong, and how much memory would do.
[[nodiscard]] Parsed<void> check_room(const EngineConfiguration& configuration, Now now);

}  // namespace sluice::embed
