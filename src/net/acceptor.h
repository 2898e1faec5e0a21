// Takes connections from a listening socket and hands them out.
//
// When descriptors run out, connections would wait in the queue of the system, and the loop would
// spin. Instead the acceptor asks the owner to free one; if it cannot, the acceptor gives up a
// reserved descriptor for a moment to accept and close the waiting connections, so that their
// clients notice, and pauses for a while. The receiver of a connection may stop the acceptor, but
// not destroy it. One thread.
#pragma once

#include "base/file_descriptor.h"
#include "net/callback.h"
#include "net/event_loop.h"
#include "net/socket_address.h"
#include <sluice/result.h>

#include <chrono>
#include <cstdint>

namespace sluice::net {

struct Accepted {
  FileDescriptor descriptor;  // nonblocking, close on exec
  Peer peer;
};

struct AcceptCounts {
  std::uint64_t accepted = 0;
  std::uint64_t aborted = 0;  // gone before they were accepted
  std::uint64_t refused = 0;  // accepted and closed, for want of descriptors
  std::uint64_t pauses = 0;   // for want of descriptors or memory
};

class Acceptor {
 public:
  // Long enough to be of no weight, short enough to be back when the flood is over.
  static constexpr Nanos kPause{std::chrono::milliseconds{100}};

  // `on_lack` sets its argument where it has freed a descriptor; it may be empty.
  explicit Acceptor(Callback<Accepted> on_accepted, Callback<bool&> on_lack = {}) noexcept;
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor() = default;

  // The descriptor is a nonblocking, listening socket that outlives this.
  [[nodiscard]] Result<void> start(EventLoop& loop, int descriptor) noexcept;
  // New connections wait in the queue of the system, or go to other sockets of the same port.
  void stop() noexcept;
  // Stops once the waiting connections were accepted: the system resets them when the socket
  // closes.
  void finish();

  [[nodiscard]] const AcceptCounts& counts() const noexcept { return counts_; }

 private:
  void on_events(Events events);
  void accept_some();
  [[nodiscard]] bool accept_up_to_all();  // true: there may be more
  [[nodiscard]] bool go_on_after(int error);
  [[nodiscard]] bool is_freed() const;
  void refuse_waiting() noexcept;
  void pause() noexcept;

  // Others have their turn before the rest of a flood.
  static constexpr int kPerTurn = 64;

  Callback<Accepted> on_accepted_;
  Callback<bool&> on_lack_;
  EventLoop* loop_ = nullptr;  // null: stopped
  int descriptor_ = -1;
  Watcher watcher_;
  Timer pause_;
  Task rest_;
  FileDescriptor reserve_;
  AcceptCounts counts_;
};

}  // namespace sluice::net
