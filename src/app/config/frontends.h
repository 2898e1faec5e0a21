// The front ends of this program, in the order in which the reference and reports show them.
#pragma once

#include "frontend/frontend.h"

#include <span>

namespace sluice::app {

// FrontendConfigs have the same order.
[[nodiscard]] std::span<const frontend::FrontendKind* const> frontends();

}  // namespace sluice::app
