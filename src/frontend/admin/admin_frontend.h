// The admin listener as a front end of a server: on its own thread, so that neither a long page
// delays signals nor a long reload delays a probe.
#pragma once

#include "frontend/frontend.h"

namespace sluice::admin {

[[nodiscard]] const frontend::FrontendKind& kind();

}  // namespace sluice::admin
