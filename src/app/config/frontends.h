// The front ends of this program, in the order of the reference and of reports.
#pragma once

#include "frontend/frontend.h"

#include <span>

namespace sluice::app {

// FrontendConfigs have the same order.
[[nodiscard]] std::span<const frontend::FrontendKind* const> frontends();

}  // namespace sluice::app
