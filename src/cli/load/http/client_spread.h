// Which client sends the next request.
//
// Even: each in turn, so that after any number of rounds all have sent the same. Zipf: client k
// sends in proportion to 1/k, as popular things are asked for; drawn with a seed. One thread.
#pragma once

#include "base/random.h"

#include <cstdint>
#include <vector>

namespace sluice::cli {

enum class Spread : std::uint8_t { even, zipf };

// What is drawn from; shared by the threads. Immutable.
class ClientShares {
 public:
  // At least one client.
  ClientShares(Spread spread, std::uint64_t clients);

  [[nodiscard]] std::uint64_t clients() const noexcept { return clients_; }
  // Of request n, both counted from 0.
  [[nodiscard]] std::uint64_t client_of(std::uint64_t n, Random& random) const noexcept;

 private:
  std::uint64_t clients_;
  std::vector<double> sums_;  // of zipf: of the shares up to and with a client; the last is 1
};

}  // namespace sluice::cli
