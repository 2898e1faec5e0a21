// An instant in a loop, exact to some microseconds, where timers of the loop are to a millisecond.
//
// One thread. Not movable: the loop knows its address.
#pragma once

#include "base/file_descriptor.h"
#include "net/callback.h"
#include "net/event_loop.h"
#include <sluice/time.h>

namespace sluice::cli {

class Alarm {
 public:
  explicit Alarm(net::Callback<> on_due) noexcept;

  // False if the system has no descriptor for it.
  [[nodiscard]] bool start(net::EventLoop& loop) noexcept;
  // Replaces the instant that was set before. An instant in the past is due at once.
  void set(MonoTime at) noexcept;

 private:
  void on_events(net::Events events);

  net::Callback<> on_due_;
  MonoTime at_;  // what is set; nothing is at the epoch
  FileDescriptor descriptor_;
  net::Watcher watcher_;  // behind the descriptor, since it goes first
};

}  // namespace sluice::cli
