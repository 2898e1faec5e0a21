// The grammar of a configuration file.
#pragma once

#include "config/grammar.h"

namespace sluice::app {

[[nodiscard]] const config::Section& configuration_section();

}  // namespace sluice::app
