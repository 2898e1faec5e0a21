// One thread that waits for descriptors, timers and messages, and calls their callbacks.
//
// Our own, on edge-triggered epoll: a descriptor is registered once, for both directions, and never
// asked whether it is ready; it tells when that changes (socket.h remembers). A turn is: wait, read
// the clock once, call the hook, the watchers, the timers, the tasks. Watchers come before timers:
// a response that arrived in time counts, even if the thread was late.
//
// All of it belongs to the thread that calls `run`, except `post` and `stop`, which any thread may
// call. Whatever is called may remove and destroy any watcher, timer or task, its own included.
// Nothing allocates but `post`. A loop outlives the watchers that are started in it.
#pragma once

#include "base/file_descriptor.h"
#include "net/callback.h"
#include "net/intrusive_list.h"
#include "net/timer_wheel.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>
#include <sluice/result.h>
#include <sluice/time.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <sys/epoll.h>
#include <vector>

namespace sluice::net {

class EventLoop;

// What became possible on a descriptor. An error makes everything possible: trying will tell.
struct Events {
  bool readable = false;
  bool writable = false;
  bool hung_up = false;  // the peer will send nothing more, or the connection failed
  bool failed = false;   // nothing goes either way any more
};

// One descriptor in a loop, which the watcher does not own: stop watching, then close.
class Watcher {
 public:
  explicit Watcher(Callback<Events> on_events) noexcept : on_events_(on_events) {}
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher() { stop(); }

  // From now on, until `stop`, the callback hears of every change, and first of what is possible
  // already.
  [[nodiscard]] Result<void> start(EventLoop& loop, int descriptor) noexcept;
  void stop() noexcept;

 private:
  friend class EventLoop;

  Callback<Events> on_events_;
  EventLoop* loop_ = nullptr;
  int descriptor_ = -1;
};

// Work for the end of the turn.
class Task : ListHook {
 public:
  explicit Task(Callback<> run) noexcept : run_(run) {}
  void cancel() noexcept { unlink(); }

 private:
  friend class EventLoop;
  friend class List<Task>;

  Callback<> run_;
};

class EventLoop {
 public:
  // The clock outlives the loop.
  [[nodiscard]] static Parsed<std::unique_ptr<EventLoop>> create(const Clock& clock);
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop() = default;

  // Turns until `stop` is called; an earlier call ends the first turn.
  void run();
  // A single turn that waits no longer than this.
  void turn(Nanos wait_max);

  // Thread-safe.
  void stop() noexcept;
  // Thread-safe; the function runs in the loop, in the order of posting. When the loop ends, the
  // rest are dropped.
  void post(std::function<void()> function);

  // As of the beginning of the turn.
  [[nodiscard]] Now now() const noexcept { return now_; }
  // For measurements within a turn.
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }

  void set(Timer& timer, Nanos after) noexcept;
  // A task that is asked for while tasks run, runs at the end of the next turn, which does not
  // wait: so one with much to do lets others have their turn.
  void run_soon(Task& task) noexcept { tasks_.push_back(task); }
  // Tasks wait for the next turn.
  [[nodiscard]] bool has_tasks() const noexcept { return !tasks_.empty(); }
  // Called once per turn, before everything else.
  void set_turn_hook(Callback<Now> hook) noexcept { turn_hook_ = hook; }

 private:
  friend class Watcher;
  EventLoop(const Clock& clock, FileDescriptor epoll, FileDescriptor wake);

  void wait(Nanos wait_max) noexcept;
  [[nodiscard]] int timeout_ms(Nanos wait_max) const noexcept;
  void dispatch();
  void run_tasks();
  void run_posted(Events events);
  void wake() noexcept;
  void forget(const Watcher& watcher) noexcept;

  // Enough for a busy turn; what does not fit is told in the next.
  static constexpr std::size_t kEventsMax = 256;

  const Clock& clock_;
  FileDescriptor epoll_;
  FileDescriptor wake_;
  Now now_;
  TimerWheel timers_;
  List<Task> tasks_;
  Callback<Now> turn_hook_;

  // Of the present turn: those from `dispatched_` up to `received_` are still to be told.
  std::array<epoll_event, kEventsMax> events_{};
  std::size_t dispatched_ = 0;
  std::size_t received_ = 0;

  Watcher wake_watcher_;  // behind all that it uses when it goes

  // Shared with posting threads.
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;  // under the mutex
};

}  // namespace sluice::net
