// The world of a simulation: its time, its events, its chance, and what happened so far.
//
// Everything runs in one thread, from one seed. Time stands still while an event runs and jumps to
// the next one. Two events of the same instant run in the order in which they were scheduled. All
// that happens goes into a running hash: the same seed has to give the same hash, on any machine.
//
// The time of the world is the truth that no participant knows: a node has a clock of its own
// (clock.h), and runs as a process that may pause or crash (process.h).
#pragma once

#include "sim/random.h"
#include "sim/task.h"
#include <sluice/time.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::sim {

// In the shape of a std::chrono clock, without now(). Begins with 0.
struct WorldBase {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Nanos;
  using time_point = std::chrono::time_point<WorldBase, Nanos>;
  static constexpr bool is_steady = true;
};
using WorldTime = WorldBase::time_point;

class World {
 public:
  explicit World(std::uint64_t seed) : seed_(seed), hash_(seed) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() = default;

  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] WorldTime now() const noexcept { return now_; }

  // A stream of this name. Throws if the name was given before: two parts that draw the same
  // numbers would be correlated.
  [[nodiscard]] Stream random(std::string_view name);

  // ---- events ---------------------------------------------------------------------------------

  // Names one scheduled task; the default names none.
  struct Timer {
    std::uint64_t sequence = 0;
    std::uint32_t slot = 0;
  };

  // Throws for an instant that has passed.
  Timer at(WorldTime when, Task task);
  Timer after(Nanos delay, Task task) { return at(now_ + delay, std::move(task)); }
  // False if it ran or was cancelled before.
  bool cancel(Timer timer) noexcept;

  // The next event; false if there is none.
  bool step();
  // All events up to this instant, which then is the time. Events of that instant run, too.
  void run_until(WorldTime end);
  void run_for(Nanos time) { run_until(now_ + time); }
  // Until no event is left. Throws after so many: something never ends.
  void run_all(std::uint64_t events_max = 100'000'000);

  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  [[nodiscard]] std::size_t scheduled() const noexcept { return live_; }

  // ---- what happened --------------------------------------------------------------------------

  // Every event notes itself; what is not visible from its time and order is noted by its part.
  void note(std::uint64_t word) noexcept;
  void note(std::string_view text) noexcept;
  [[nodiscard]] std::uint64_t history() const noexcept { return hash_; }

 private:
  struct Event {
    WorldTime when;
    std::uint64_t sequence = 0;
    std::uint32_t slot = 0;
  };
  struct Slot {
    std::uint64_t sequence = 0;  // of the event that it belongs to; 0: free
    Task task;
  };

  static bool is_later(const Event& a, const Event& b) noexcept {
    return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
  }
  // Drops cancelled events from the top; whether one is left.
  bool find_next();
  void free(std::uint32_t slot) noexcept;

  std::uint64_t seed_;
  WorldTime now_{};
  std::vector<Event> queue_;  // a heap; the earliest is at its front
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t events_ = 0;
  std::size_t live_ = 0;
  std::uint64_t hash_;
  std::set<std::string, std::less<>> streams_;
};

}  // namespace sluice::sim
