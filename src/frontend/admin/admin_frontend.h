// The admin listener, as a server knows it: on a thread of its own, so that neither a long page
// delays signals nor a long reload delays a probe.
#pragma once

#include "frontend/frontend.h"

namespace sluice::admin {

[[nodiscard]] const frontend::FrontendKind& kind();

}  // namespace sluice::admin
