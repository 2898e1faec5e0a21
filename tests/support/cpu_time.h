// For tests of how something grows: the processor time that it takes.
#pragma once

#include <algorithm>
#include <ctime>
#include <limits>

namespace sluice::testing {

// The least of several runs, in seconds: other programs disturb some of them.
template <class Run>
double least_cpu_seconds(int runs, Run&& run) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    const std::clock_t began = std::clock();
    run();
    const auto took = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    least = std::min(least, took);
  }
  return least;
}

}  // namespace sluice::testing
