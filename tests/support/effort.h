// How much the heaviest tests do. A run of everything with sanitizers does the brief form; the full
// one runs where SLUICE_TESTS_FULL is set: in the plain build always, elsewhere by
// `./dev test --all`.
#pragma once

#include <cstdlib>

namespace sluice::testing {

template <class Count>
[[nodiscard]] Count effort(Count brief, Count full) noexcept {
  return std::getenv("SLUICE_TESTS_FULL") != nullptr ? full : brief;
}

}  // namespace sluice::testing
