// For tests: how often this program has allocated.
#pragma once

#include <cstdint>

namespace sluice::store {

[[nodiscard]] std::uint64_t allocations() noexcept;

}  // namespace sluice::store
