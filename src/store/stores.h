// The stores of one process: what all workers share, and a store for each of them.
#pragma once

#include "store/limits.h"
#include "store/store.h"

#include <memory>

namespace sluice::store {

// Thread-safe. Outlives the stores that it makes.
class Stores {
 public:
  Stores() = default;
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;
  virtual ~Stores() = default;

  [[nodiscard]] virtual Limits& limits() noexcept = 0;
  // `workers`: how many run in parallel.
  [[nodiscard]] virtual std::unique_ptr<Store> for_worker(unsigned workers) = 0;
};

}  // namespace sluice::store
