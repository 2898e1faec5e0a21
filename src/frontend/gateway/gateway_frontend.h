// The gateway, as a server knows it.
#pragma once

#include "frontend/frontend.h"

namespace sluice::gateway {

[[nodiscard]] const frontend::FrontendKind& kind();

}  // namespace sluice::gateway
