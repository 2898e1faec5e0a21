// The members of a limiter.
#pragma once

#include "base/digest.h"
#include "limiter/counter_table_inside.h"
#include "limiter/waiting_room.h"
#include "store/local/local_store.h"
#include "store/local/thread_cache.h"
#include <sluice/limiter.h>

#include <atomic>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace sluice {

// A thread cache for the threads of one processor, one thread at a time.
struct alignas(128) Desk {
  explicit Desk(store::LocalStore& store, unsigned desks) noexcept : worker(store, desks) {}
  std::atomic_flag taken;
  store::ThreadCache worker;
};

struct Limiter::Inside {
  LimiterOptions options;
  std::vector<Limit> limits;
  std::vector<store::LimitNumber> numbers;
  std::vector<KeyHasher> hashers;  // one for each limit
  const Clock* clock = nullptr;
  WaitingRoom waiting;
  std::vector<std::unique_ptr<Desk>> desks;  // one per processor, with thread leases

  Inside() = default;
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    for (const store::LimitNumber number : numbers) store().stop_using(number);
  }

  [[nodiscard]] store::LocalStore& store() const noexcept { return *options.table->inside_->store; }

  [[nodiscard]] store::Check check(std::size_t limit, std::string_view key,
                                   Cost cost) const noexcept {
    return {.key = {.low = hashers[limit].low(key)},
            .limit = numbers[limit],
            .cost = cost,
            .change = options.on_change,
            .on_table_full = options.on_table_full};
  }

  void tell(std::string_view key, Cost cost, const Decision& decision) const noexcept {
    if (options.observer != nullptr) options.observer->decided(options.name, key, cost, decision);
  }

  [[nodiscard]] Decision decide_one(const store::Check& check, Now now) const noexcept;
  [[nodiscard]] Decision decide(std::string_view key, Cost cost, Now now,
                                std::span<store::Answer> answers) const noexcept;

  // For a caller with this much time left: a longer delay in a queue becomes a rejection.
  [[nodiscard]] Decision decide_within(Nanos left, std::string_view key, Cost cost,
                                       Now now) const noexcept;
  [[nodiscard]] bool can_ever_pass(Cost cost) const noexcept;
};

}  // namespace sluice
