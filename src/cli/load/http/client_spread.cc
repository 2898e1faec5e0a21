#include "cli/load/http/client_spread.h"

#include <algorithm>

namespace sluice::cli {
namespace {

// Uniform in [0, 1): the upper 53 bits are what a double holds exactly.
double share(Random& random) noexcept { return static_cast<double>(random() >> 11U) * 0x1.0p-53; }

}  // namespace

ClientShares::ClientShares(Spread spread, std::uint64_t clients) : clients_(clients) {
  if (spread == Spread::even) return;
  sums_.reserve(clients);
  double sum = 0;
  for (std::uint64_t k = 1; k <= clients; ++k) sums_.push_back(sum += 1 / static_cast<double>(k));
  for (double& upto : sums_) upto /= sum;
}

std::uint64_t ClientShares::client_of(std::uint64_t n, Random& random) const noexcept {
  if (sums_.empty()) return n % clients_;
  const auto found = std::ranges::upper_bound(sums_, share(random));
  return std::min(static_cast<std::uint64_t>(found - sums_.begin()), clients_ - 1);
}

}  // namespace sluice::cli
