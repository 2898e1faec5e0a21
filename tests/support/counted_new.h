// How often this thread has allocated; for programs that are linked with counted_new.cc.
#pragma once

#include <cstdint>

namespace sluice::testing {

[[nodiscard]] std::uint64_t allocations() noexcept;

}  // namespace sluice::testing
