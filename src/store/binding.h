// Which of several limits determines a request's decision.
#pragma once

#include "store/check.h"

#include <cstddef>
#include <span>

namespace sluice::store {

// Rejected: `never`, else the longest wait; an unknown wait ranks below any number. Allowed: the
// least left, then the longest reset. Requires at least one decision.
[[nodiscard]] std::size_t binding(std::span<const Answer> answers) noexcept;

// Its decision. An admitted request is queued until the slowest queue releases it.
[[nodiscard]] Decision binding_decision(std::span<const Answer> answers) noexcept;

}  // namespace sluice::store
