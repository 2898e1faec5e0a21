#include "sim/world.h"

#include "base/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace sluice::sim {

Stream World::random(std::string_view name) {
  if (!streams_.emplace(name).second) {
    throw std::logic_error{fmt::format("two parts draw from the stream {}", name)};
  }
  return Stream{seed_, name};
}

World::Timer World::at(WorldTime when, Task task) {
  if (when < now_) throw std::logic_error{"an event was scheduled for an instant that has passed"};
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  const std::uint64_t sequence = next_sequence_++;
  slots_[slot].sequence = sequence;
  slots_[slot].task = std::move(task);
  queue_.push_back({.when = when, .sequence = sequence, .slot = slot});
  std::push_heap(queue_.begin(), queue_.end(), is_later);
  ++live_;
  return {.sequence = sequence, .slot = slot};
}

void World::free(std::uint32_t slot) noexcept {
  slots_[slot].sequence = 0;
  slots_[slot].task = {};
  free_.push_back(slot);
  --live_;
}

bool World::cancel(Timer timer) noexcept {
  if (timer.sequence == 0 || slots_[timer.slot].sequence != timer.sequence) return false;
  free(timer.slot);
  return true;
}

bool World::find_next() {
  while (!queue_.empty()) {
    const Event& next = queue_.front();
    if (slots_[next.slot].sequence == next.sequence) return true;
    std::pop_heap(queue_.begin(), queue_.end(), is_later);
    queue_.pop_back();
  }
  return false;
}

bool World::step() {
  if (!find_next()) return false;
  const Event event = queue_.front();
  std::pop_heap(queue_.begin(), queue_.end(), is_later);
  queue_.pop_back();
  // Its own slot is free while it runs: a task may schedule itself again.
  Task task = std::move(slots_[event.slot].task);
  free(event.slot);
  now_ = event.when;
  ++events_;
  note(static_cast<std::uint64_t>(event.when.time_since_epoch().count()));
  note(event.sequence);
  task();
  return true;
}

void World::run_until(WorldTime end) {
  while (find_next() && queue_.front().when <= end) step();
  now_ = std::max(now_, end);
}

void World::run_all(std::uint64_t events_max) {
  for (std::uint64_t i = 0; step(); ++i) {
    if (i == events_max) throw std::logic_error{"the simulation does not come to an end"};
  }
}

void World::note(std::uint64_t word) noexcept { hash_ = folded(hash_ ^ word, kOddFactor) + word; }

void World::note(std::string_view text) noexcept { note(hash_text(hash_, text)); }

}  // namespace sluice::sim
