// What a node admitted by its share, or by `on_failure: open`, while the authority could not be
// reached: to be charged there when it is back, so that nobody has a second budget.
//
// One entry for each key of a limit, however often it was used. Bounded: what finds no place is
// not remembered, and the caller counts it. One thread.
#pragma once

#include "store/check.h"
#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::store {

class Settlements {
 public:
  struct Entry {
    Check check;              // the last one; its cost says nothing
    std::uint64_t spent = 0;  // 0: no entry
    MonoTime last;            // when something was added
  };

  explicit Settlements(std::size_t entries);  // a power of two

  // False: there is no place.
  [[nodiscard]] bool add(const Check& check, Cost cost, MonoTime now) noexcept;
  // A request gave this back; says how much of it had not been settled yet.
  Cost take_back(const Check& check, Cost cost) noexcept;

  // Removes one.
  [[nodiscard]] std::optional<Entry> take() noexcept;
  // The one that take() would remove. Null: there is none.
  [[nodiscard]] const Entry* next() noexcept;
  // Its turn comes after all others.
  void skip() noexcept { cursor_ = (cursor_ + 1) & (entries_.size() - 1); }

  [[nodiscard]] bool empty() const noexcept { return used_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return used_; }

 private:
  static constexpr std::size_t kWays = 8;

  [[nodiscard]] Entry& place_of(const Check& check, std::size_t way) noexcept {
    return entries_[static_cast<std::size_t>(check.key.low + check.key.high + way) &
                    (entries_.size() - 1)];
  }
  [[nodiscard]] Entry* find(const Check& check) noexcept;

  std::vector<Entry> entries_;
  std::size_t used_ = 0;
  std::size_t cursor_ = 0;
};

}  // namespace sluice::store
