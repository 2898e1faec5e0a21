// How much the heaviest tests do: the full form where SLUICE_TESTS_FULL is set, which is in the
// plain stage of `./dev test` and everywhere with `--all`; the brief one elsewhere, under
// sanitizers.
#pragma once

#include <cstdlib>

namespace sluice::testing {

template <class Count>
[[nodiscard]] Count effort(Count brief, Count full) noexcept {
  return std::getenv("SLUICE_TESTS_FULL") != nullptr ? full : brief;
}

}  // namespace sluice::testing
