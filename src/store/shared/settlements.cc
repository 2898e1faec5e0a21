#include "store/shared/settlements.h"

#include <algorithm>

namespace sluice::store {

Settlements::Settlements(std::size_t entries) : entries_(entries) {}

Settlements::Entry* Settlements::find(const Check& check) noexcept {
  for (std::size_t way = 0; way < kWays; ++way) {
    Entry& entry = place_of(check, way);
    if (entry.spent > 0 && entry.check.key == check.key && entry.check.limit == check.limit) {
      return &entry;
    }
  }
  return nullptr;
}

bool Settlements::add(const Check& check, Cost cost, MonoTime now) noexcept {
  if (cost == 0) return true;
  Entry* entry = find(check);
  for (std::size_t way = 0; entry == nullptr && way < kWays; ++way) {
    Entry& place = place_of(check, way);
    if (place.spent == 0) entry = &place;
  }
  if (entry == nullptr) return false;
  if (entry->spent == 0) ++used_;
  entry->check = check;
  entry->spent += cost;
  entry->last = now;
  return true;
}

Cost Settlements::take_back(const Check& check, Cost cost) noexcept {
  Entry* const entry = find(check);
  if (entry == nullptr) return 0;
  const auto taken = static_cast<Cost>(std::min<std::uint64_t>(entry->spent, cost));
  entry->spent -= taken;
  if (entry->spent == 0) --used_;
  return taken;
}

const Settlements::Entry* Settlements::next() noexcept {
  if (used_ == 0) return nullptr;
  while (entries_[cursor_].spent == 0) cursor_ = (cursor_ + 1) & (entries_.size() - 1);
  return &entries_[cursor_];
}

std::optional<Settlements::Entry> Settlements::take() noexcept {
  const Entry* const found = next();
  if (found == nullptr) return std::nullopt;
  const Entry entry = *found;
  entries_[cursor_].spent = 0;
  --used_;
  return entry;
}

}  // namespace sluice::store
