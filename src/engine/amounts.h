// Limits whose amount comes with the request (`from`), and their numbers in the store.
//
// A worker meets the same few amounts again and again: those of its customers' contracts. The first
// lookup takes a number from the registry, under a lock; the worker then remembers it, and for some
// seconds also that there is none. The memory is bounded: when two amounts want the same
// place, the newer one gets it. Unused amounts are returned, so that the store can reuse their
// numbers. A request keeps the number that it was decided by until it is settled, however long that
// takes: its charge is refunded under that number. One thread.
#pragma once

#include "engine/snapshot.h"
#include "store/limits.h"
#include <sluice/time.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sluice::engine {

class Amounts {
 public:
  explicit Amounts(store::Limits& registry) noexcept : registry_(registry) {}
  Amounts(const Amounts&) = delete;
  Amounts& operator=(const Amounts&) = delete;
  ~Amounts();

  // The amount of a request, and the override that applies to it.
  struct Wanted {
    std::uint64_t amount = 0;
    std::uint32_t permille = 1000;  // of amount and burst
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  // A number of the store, for as long as it is remembered here or a request uses it.
  struct Use {
    store::LimitNumber number = 0;
    std::uint32_t requests = 0;
    bool is_remembered = false;
  };
  struct Brought {
    store::LimitNumber number = 0;
    std::uint64_t amount = 0;
    bool is_left_out = false;  // the written limit in place of the requested one
    Use* use = nullptr;        // null: the written limit
  };
  // The limit with that amount, as far as it can be enforced; the written limit if the store has no
  // room for one more.
  [[nodiscard]] Brought find(const PlannedLimit& limit, const Sharing& sharing, Wanted wanted,
                             Now now) noexcept;
  void forget() noexcept;  // the limits that these were made of are destroyed

  static void keep(Use& use) noexcept { ++use.requests; }
  void let_go(Use& use) noexcept;  // once for each keep()

 private:
  static constexpr std::size_t kPlaces = 1024;
  static constexpr std::size_t kUses = 2 * kPlaces;  // half of them for long requests
  // How soon to ask the store again after it had no room; it tidies every minute.
  static constexpr Nanos kAskAgainAfter = std::chrono::seconds{10};
  // Amounts unused for so long are returned: asking once more is cheap by comparison.
  static constexpr Nanos kUnusedFor = std::chrono::minutes{1};
  struct Place {
    const PlannedLimit* of = nullptr;
    Wanted wanted;
    Brought brought;
    MonoTime used;  // if left out: last asked
  };

  [[nodiscard]] Use* free_use() noexcept;
  void give_back(Place& place) noexcept;
  void give_back_unused(MonoTime now) noexcept;

  store::Limits& registry_;
  MonoTime looked_;  // for places no longer used
  std::array<Place, kPlaces> places_{};
  std::array<Use, kUses> uses_{};
  std::size_t next_use_ = 0;  // where the search for a free one starts
};

}  // namespace sluice::engine
