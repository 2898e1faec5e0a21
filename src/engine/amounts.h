// Limits whose amount a request brings along (`from`), and the numbers that the store knows them
// by.
//
// A worker meets the same few amounts again and again: those of its customers' contracts. The first
// time, the store is asked for a number, which takes a lock; after that it is remembered, and so is
// for some seconds that the store has none. The memory is bounded; when two amounts want the same
// place, the newer one gets it, and those that nobody brings any more are given back, so that the
// store can have their numbers for others. A request that was decided by a number keeps it until it
// is settled, however long that takes: its charge is given back under that number. One thread.
#pragma once

#include "engine/snapshot.h"
#include "store/store.h"
#include <sluice/time.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sluice::engine {

class Amounts {
 public:
  explicit Amounts(store::Store& store) noexcept : store_(store) {}
  Amounts(const Amounts&) = delete;
  Amounts& operator=(const Amounts&) = delete;
  ~Amounts();

  // What a request brings along, and what an override makes of it.
  struct Wanted {
    std::uint64_t amount = 0;
    std::uint32_t permille = 1000;  // of amount and burst
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  // A number of the store, for as long as it is remembered here or a request has it.
  struct Use {
    store::LimitNumber number = 0;
    std::uint32_t requests = 0;
    bool is_remembered = false;
  };
  struct Brought {
    store::LimitNumber number = 0;
    std::uint64_t amount = 0;
    bool is_left_out = false;  // the written limit in place of what was wanted
    Use* use = nullptr;        // null: the written limit
  };
  // The limit with that amount, as far as it can be enforced; as written where the store has no
  // room for one more.
  [[nodiscard]] Brought find(const PlannedLimit& limit, Wanted wanted, Now now) noexcept;
  void forget() noexcept;  // the limits that these were made of go away

  static void keep(Use& use) noexcept { ++use.requests; }
  void let_go(Use& use) noexcept;  // once for each keep()

 private:
  static constexpr std::size_t kPlaces = 1024;
  static constexpr std::size_t kUses = 2 * kPlaces;  // half of them for requests that take long
  // How soon the store is asked again for what it had no room for; it tidies every minute.
  static constexpr Nanos kAskAgainAfter = std::chrono::seconds{10};
  // Nobody has brought it for so long: asking once more is cheap by comparison.
  static constexpr Nanos kUnusedFor = std::chrono::minutes{1};
  struct Place {
    const PlannedLimit* of = nullptr;
    Wanted wanted;
    Brought brought;
    MonoTime used;  // if left out: asked for
  };

  [[nodiscard]] Use* free_use() noexcept;
  void give_back(Place& place) noexcept;
  void give_back_unused(MonoTime now) noexcept;

  store::Store& store_;
  MonoTime looked_;  // for places that are not used any more
  std::array<Place, kPlaces> places_{};
  std::array<Use, kUses> uses_{};
  std::size_t next_use_ = 0;  // where a free one is looked for first
};

}  // namespace sluice::engine
