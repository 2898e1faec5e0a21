// Whether the table has room for the limits of a configuration, told before it is opened.
#pragma once

#include "app/config/configuration.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <cstddef>

namespace sluice::app {

// As many as the table has to know at once. Rules with the same numbers share one.
[[nodiscard]] std::size_t distinct_limits(const Configuration& configuration, WallTime now);

// What is wrong, and how much memory would do.
[[nodiscard]] Parsed<void> check_room(const Configuration& configuration, WallTime now);

}  // namespace sluice::app
