// Signals as events of a loop: no code of ours runs inside a signal handler.
#pragma once

#include "base/file_descriptor.h"
#include "net/callback.h"
#include "net/event_loop.h"
#include <sluice/diagnostic.h>

#include <csignal>
#include <memory>

namespace sluice::net {

// From its making to its end SIGTERM, SIGINT, SIGHUP and SIGUSR1 come to the loop, and SIGPIPE is
// ignored for good. Make it before there are other threads: a thread started earlier would be
// ended by them. The callback of a signal must not destroy the source. One thread.
class SignalSource {
 public:
  [[nodiscard]] static Parsed<std::unique_ptr<SignalSource>> create(EventLoop& loop,
                                                                    Callback<int> on_signal);
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;
  ~SignalSource();

 private:
  explicit SignalSource(Callback<int> on_signal) noexcept;
  [[nodiscard]] bool start(EventLoop& loop) noexcept;
  void on_events(Events events);

  Callback<int> on_signal_;
  sigset_t before_{};
  FileDescriptor descriptor_;
  Watcher watcher_;
};

}  // namespace sluice::net
