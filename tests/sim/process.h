// A process of a simulated machine: it has clocks and timers, and may pause or crash.
//
// A paused process (SIGSTOP, a stalled virtual machine) runs nothing; what came due meanwhile runs
// when it resumes, in the order in which it came due. A crash drops all timers; what the process
// knew is the affair of its owner. A machine may go with its process: then no answer comes from it,
// not even that a connection is unknown (network.h).
#pragma once

#include "sim/clock.h"
#include "sim/world.h"
#include <sluice/time.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace sluice::sim {

enum class Crash : std::uint8_t { process, machine };

// One thread. Outlives its timers' tasks; the world outlives it.
class Process {
 public:
  // What has to know of pauses and crashes; removed by no one, so it lives as long as the process.
  class Observer {
   public:
    Observer() = default;
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;
    virtual ~Observer() = default;
    virtual void resumed(Process& process) = 0;
    virtual void crashed(Process& process, Crash crash) = 0;
  };

  Process(World& world, std::string name, const NodeClock::Start& clock)
      : world_(world), name_(std::move(name)), clock_(world, clock) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() = default;

  [[nodiscard]] World& world() noexcept { return world_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] NodeClock& clock() noexcept { return clock_; }

  [[nodiscard]] bool is_running() const noexcept { return alive_ && !paused_; }
  [[nodiscard]] bool is_alive() const noexcept { return alive_; }
  [[nodiscard]] bool is_paused() const noexcept { return alive_ && paused_; }
  [[nodiscard]] bool machine_is_up() const noexcept { return machine_up_; }
  // Counts starts; what belongs to an earlier one is void.
  [[nodiscard]] std::uint32_t incarnation() const noexcept { return incarnation_; }

  // Names one timer of this process; the default names none.
  struct Timer {
    std::uint64_t number = 0;
    std::uint32_t entry = 0;
  };

  // When the monotonic clock shows this; right away if it does already. A process that crashed has
  // no timers: the task is dropped.
  Timer at(MonoTime when, Task task);
  Timer after(Nanos delay, Task task) { return at(clock_.now().mono + delay, std::move(task)); }
  // Also of a task that a pause defers. False if it ran or was dropped.
  bool cancel(Timer timer) noexcept;

  void pause() noexcept { paused_ = true; }
  void resume();
  void crash(Crash crash = Crash::process);
  void restart() noexcept;

  void observe(Observer& observer) { observers_.push_back(&observer); }

 private:
  struct Entry {
    std::uint64_t number = 0;  // 0: free
    World::Timer timer;
    Task task;
  };
  void due(Timer timer);
  void release(std::uint32_t entry) noexcept;

  World& world_;
  std::string name_;
  NodeClock clock_;
  bool alive_ = true;
  bool paused_ = false;
  bool machine_up_ = true;
  std::uint32_t incarnation_ = 1;
  std::uint64_t next_number_ = 1;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  std::deque<Timer> deferred_;  // came due during a pause
  std::vector<Observer*> observers_;
};

}  // namespace sluice::sim
