// How many files and sockets the process may have open (RLIMIT_NOFILE).
#pragma once

#include <cstdint>

namespace sluice {

// The hard limit: as far as raise_descriptor_limit() goes.
[[nodiscard]] std::uint64_t descriptors_max() noexcept;

// Raises the soft limit to the hard one; where that is not allowed, it stays.
void raise_descriptor_limit() noexcept;

}  // namespace sluice
