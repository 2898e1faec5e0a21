#include "limiter/waiting_room.h"

#include <algorithm>
#include <utility>

namespace sluice {

WaitingRoom::Number WaitingRoom::take_number() {
  const std::lock_guard guard{mutex_};
  return ++last_;
}

bool WaitingRoom::join(const Digest& key, Number number, Turn turn) {
  const std::lock_guard guard{mutex_};
  std::list<Waiter>& line = lines_[key];
  line.push_back({.number = number, .turn = std::move(turn)});
  return line.size() == 1;
}

void WaitingRoom::leave(const Digest& key, Number number) {
  Turn next;
  {
    const std::lock_guard guard{mutex_};
    const auto line = lines_.find(key);
    if (line == lines_.end()) return;
    std::list<Waiter>& waiters = line->second;
    const bool was_first = waiters.front().number == number;
    waiters.remove_if([number](const Waiter& one) { return one.number == number; });
    if (waiters.empty()) {
      lines_.erase(line);
    } else if (was_first) {
      next = waiters.front().turn;
    }
  }
  if (next) next();
}

bool WaitingRoom::is_empty(const Digest& key) const {
  const std::lock_guard guard{mutex_};
  return !lines_.contains(key);
}

}  // namespace sluice
