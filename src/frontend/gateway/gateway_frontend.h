// The gateway as a front end of a server.
#pragma once

#include "frontend/frontend.h"

namespace sluice::gateway {

[[nodiscard]] const frontend::FrontendKind& kind();

}  // namespace sluice::gateway
