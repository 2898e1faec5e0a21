// The grammar of listeners and of the server as a whole.
#pragma once

#include "config/grammar.h"

namespace sluice::app {

[[nodiscard]] const config::Section& listen_section();
[[nodiscard]] const config::Section& access_log_section();
[[nodiscard]] const config::Section& drain_section();

}  // namespace sluice::app
