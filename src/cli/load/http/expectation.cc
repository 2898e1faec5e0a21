#include "cli/load/http/expectation.h"

#include <sluice/int128.h>

#include <algorithm>
#include <chrono>

namespace sluice::cli {

double Expectation::per_second() const noexcept {
  return static_cast<double>(amount) / std::chrono::duration<double>(period).count();
}

std::uint64_t Expectation::most_in(Nanos time) const noexcept {
  const auto periods = static_cast<std::uint64_t>(time / period);
  const std::uint64_t capacity =
      burst.value_or(algorithm == Algorithm::leaky_bucket ? std::uint64_t{1} : amount);
  const auto bucket = [&] {
    return capacity +
           static_cast<std::uint64_t>(Uint128{amount} * static_cast<std::uint64_t>(time.count()) /
                                      static_cast<std::uint64_t>(period.count()));
  };
  const std::uint64_t log = amount * (periods + 1);
  const std::uint64_t windows = amount * (periods + 2);
  if (!algorithm) return std::max(bucket(), windows);
  switch (*algorithm) {
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
    case Algorithm::gcra: return bucket();
    case Algorithm::sliding_log:
    case Algorithm::sliding_buckets: return log;
    case Algorithm::fixed_window:
    case Algorithm::sliding_counter:
    case Algorithm::concurrency: break;
  }
  return windows;
}

}  // namespace sluice::cli
