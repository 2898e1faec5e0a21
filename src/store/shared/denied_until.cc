#include "store/shared/denied_until.h"

#include <algorithm>

namespace sluice::store {
namespace {

// A request that never fits is asked for again after the same time: its limit may have been edited
// on another node.
Nanos holds_for(const Decision& decision) noexcept {
  if (decision.verdict == Verdict::never) return DeniedUntil::kLongest;
  if (decision.verdict == Verdict::allowed) return Nanos{0};
  return std::min(decision.retry_after.value_or(Nanos{0}), DeniedUntil::kLongest);
}

// What was decided then, as it is now.
Decision aged(Decision decision, Nanos age) noexcept {
  decision.reset_after = std::max(decision.reset_after - age, Nanos{0});
  if (decision.retry_after) decision.retry_after = std::max(*decision.retry_after - age, Nanos{1});
  return decision;
}

}  // namespace

DeniedUntil::DeniedUntil(std::size_t entries) : entries_(entries) {}

const DeniedUntil::Entry* DeniedUntil::find(const Digest& key) const noexcept {
  for (std::size_t way = 0; way < kWays; ++way) {
    const Entry& entry = entries_[place_of(key, way)];
    if (entry.count > 0 && entry.key == key) return &entry;
  }
  return nullptr;
}

bool DeniedUntil::rejects(const Digest& key, std::span<const Check> checks, Now now,
                          std::span<Answer> answers) const noexcept {
  const Entry* const entry = find(key);
  if (entry == nullptr || now.mono >= entry->until || entry->count != checks.size()) return false;
  bool rejects = false;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Remembered& was = entry->checks[i];
    if (was.limit != checks[i].limit || was.salt != checks[i].salt) return false;
    rejects |= now.mono < was.until && checks[i].cost >= was.cost;
  }
  if (!rejects) return false;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Remembered& was = entry->checks[i];
    answers[i] = {.decision = aged(was.decision, now.mono - entry->asked), .charge = {}};
    const bool still = now.mono < was.until && checks[i].cost >= was.cost;
    if (!still) answers[i].decision.verdict = Verdict::allowed;
    if (!still) answers[i].decision.retry_after.reset();
  }
  return true;
}

void DeniedUntil::remember(const Digest& key, std::span<const Check> checks,
                           std::span<const Answer> answers, MonoTime asked) noexcept {
  if (checks.size() > kChecksMax) return;
  Entry* place = nullptr;
  for (std::size_t way = 0; way < kWays; ++way) {
    Entry& entry = entries_[place_of(key, way)];
    const bool is_same = entry.count > 0 && entry.key == key;
    if (place == nullptr || is_same || entry.until < place->until) place = &entry;
    if (is_same) break;
  }
  place->key = key;
  place->count = static_cast<std::uint32_t>(checks.size());
  place->asked = place->until = asked;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const MonoTime until = asked + holds_for(answers[i].decision);
    place->until = std::max(place->until, until);
    place->checks[i] = {.salt = checks[i].salt,
                        .limit = checks[i].limit,
                        .cost = checks[i].cost,
                        .until = until,
                        .decision = answers[i].decision};
  }
}

void DeniedUntil::forget(const Digest& key) noexcept {
  for (std::size_t way = 0; way < kWays; ++way) {
    Entry& entry = entries_[place_of(key, way)];
    if (entry.key == key) entry.count = 0;
  }
}

}  // namespace sluice::store
