// Limits whose amount a request brings along (`from`), and the numbers that the store knows them
// by.
//
// A worker meets the same few amounts again and again: those of its customers' contracts. The first
// time, the store is asked for a number, which takes a lock; after that it is remembered. The
// memory is bounded; when two amounts want the same place, the newer one gets it. One thread.
#pragma once

#include "engine/snapshot.h"
#include "store/store.h"
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::engine {

class Amounts {
 public:
  explicit Amounts(store::Store& store) noexcept : store_(store) {}
  Amounts(const Amounts&) = delete;
  Amounts& operator=(const Amounts&) = delete;
  ~Amounts() { forget(); }

  // The number of a limit with another amount; its own where the store has no room for one more.
  [[nodiscard]] store::LimitNumber number(const PlannedLimit& limit, std::uint64_t amount,
                                          Now now) noexcept;
  void forget() noexcept;  // the limits that these were made of go away

 private:
  static constexpr std::size_t kPlaces = 1024;
  struct Place {
    const PlannedLimit* of = nullptr;
    std::uint64_t amount = 0;
    store::LimitNumber number = 0;
  };

  store::Store& store_;
  std::array<Place, kPlaces> places_{};
};

}  // namespace sluice::engine
