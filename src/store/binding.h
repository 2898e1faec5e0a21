// Which of several limits speaks for a request.
#pragma once

#include "store/check.h"

#include <cstddef>
#include <span>

namespace sluice::store {

// Refused: `never`, else the longest wait; one that nobody can know ranks below any number.
// Allowed: the least left, then the longest reset. Requires at least one answer.
[[nodiscard]] std::size_t binding(std::span<const Answer> answers) noexcept;

// What it says. An admitted request is held until the slowest queue lets it go.
[[nodiscard]] Decision binding_decision(std::span<const Answer> answers) noexcept;

}  // namespace sluice::store
