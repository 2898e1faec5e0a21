#include "sim/process.h"

#include <utility>

namespace sluice::sim {

Process::Timer Process::at(MonoTime when, Task task) {
  if (!alive_) return {};
  std::uint32_t entry = 0;
  if (free_.empty()) {
    entry = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    entry = free_.back();
    free_.pop_back();
  }
  const Timer timer{.number = next_number_++, .entry = entry};
  entries_[entry].number = timer.number;
  entries_[entry].task = std::move(task);
  entries_[entry].timer = world_.at(clock_.when(when), [this, timer] { due(timer); });
  return timer;
}

void Process::release(std::uint32_t entry) noexcept {
  entries_[entry].number = 0;
  entries_[entry].task = {};
  free_.push_back(entry);
}

bool Process::cancel(Timer timer) noexcept {
  if (timer.number == 0 || entries_[timer.entry].number != timer.number) return false;
  world_.cancel(entries_[timer.entry].timer);
  release(timer.entry);
  return true;
}

void Process::due(Timer timer) {
  if (entries_[timer.entry].number != timer.number) return;
  if (paused_) {
    deferred_.push_back(timer);
    return;
  }
  Task task = std::move(entries_[timer.entry].task);
  release(timer.entry);
  task();
}

void Process::resume() {
  if (!is_paused()) return;
  paused_ = false;
  world_.note("resume");
  // Events of their own, so that one of them may pause or crash the process again.
  for (const Timer timer : std::exchange(deferred_, {})) {
    if (entries_[timer.entry].number != timer.number) continue;
    entries_[timer.entry].timer = world_.after(Nanos{0}, [this, timer] { due(timer); });
  }
  for (Observer* const observer : observers_) observer->resumed(*this);
}

void Process::crash(Crash crash) {
  if (crash == Crash::machine) machine_up_ = false;
  if (!alive_) return;
  alive_ = false;
  paused_ = false;
  world_.note("crash");
  deferred_.clear();
  for (std::uint32_t entry = 0; entry < entries_.size(); ++entry) {
    if (entries_[entry].number == 0) continue;
    world_.cancel(entries_[entry].timer);
    release(entry);
  }
  for (Observer* const observer : observers_) observer->crashed(*this, crash);
}

void Process::restart() noexcept {
  if (alive_) return;
  alive_ = true;
  machine_up_ = true;
  ++incarnation_;
  world_.note("restart");
}

}  // namespace sluice::sim
