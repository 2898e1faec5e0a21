// A connected descriptor that knows whether it is ready.
//
// The loop tells once when reading or writing becomes possible; the socket remembers it until an
// attempt moves less than it asked for. So no system call is made only to hear that there is
// nothing to do: a request costs one read and one write, and an idle connection costs none and
// holds no buffer. The owner is called when something becomes possible that was not before; what
// it leaves unread stays possible, silently, which is how it slows a fast peer down.
//
// One thread. Not movable: the loop knows its address.
#pragma once

#include "base/file_descriptor.h"
#include "net/callback.h"
#include "net/event_loop.h"
#include "net/io_result.h"
#include "net/socket_address.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <sys/uio.h>

namespace sluice::net {

// Of something to write.
[[nodiscard]] inline iovec part_of(std::string_view bytes) noexcept {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): iovec serves both directions
  return {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
}

class Socket {
 public:
  explicit Socket(Callback<> on_ready) noexcept
      : on_ready_(on_ready), watcher_(Callback<Events>::to<&Socket::on_events>(*this)) {}

  // Owns a connected, nonblocking descriptor.
  [[nodiscard]] IoResult open(EventLoop& loop, FileDescriptor descriptor) noexcept;
  // Begins to connect: blocked until `connected` says more. A Unix socket connects at once.
  [[nodiscard]] IoResult connect(EventLoop& loop, const SocketAddress& address) noexcept;
  // Done, blocked or failed. Other attempts are blocked until it is done, and fail for the same
  // reason.
  [[nodiscard]] IoResult connected() noexcept;

  [[nodiscard]] IoResult receive(std::span<char> into) noexcept;
  // The same, but the bytes stay in the socket. A caller that finds too few waits for more, which
  // are reported again.
  [[nodiscard]] IoResult peek(std::span<char> into) noexcept;
  void wait_for_more() noexcept { readable_ = false; }
  // Nothing has come that was not read, not even the end. Asks the system: what came during this
  // turn of the loop has not been told yet.
  [[nodiscard]] bool is_silent() const noexcept;
  [[nodiscard]] IoResult send(std::span<const iovec> parts) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(descriptor_); }
  [[nodiscard]] bool can_read() const noexcept { return readable_; }
  [[nodiscard]] bool can_write() const noexcept { return writable_; }
  // The peer will send nothing beyond what is still unread, or is gone altogether.
  [[nodiscard]] bool peer_hung_up() const noexcept { return hung_up_; }
  // Nothing goes either way any more: it was reset, or failed.
  [[nodiscard]] bool is_broken() const noexcept { return broken_; }

  // Bytes that were written and that the peer's system has not taken yet. The loop tells only when
  // much of that room is free again: this tells whether a slow peer takes anything.
  [[nodiscard]] std::size_t unsent() const noexcept;

  void finish_writing() noexcept;  // half close: the peer reads the end
  void close() noexcept;
  // Both sides forget the connection at once; the peer reads an error.
  void reset() noexcept;
  // Gives the descriptor away, no longer watched.
  [[nodiscard]] FileDescriptor release() noexcept;

  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }

 private:
  void on_events(Events events);
  [[nodiscard]] IoResult watch(EventLoop& loop, FileDescriptor descriptor) noexcept;

  Callback<> on_ready_;
  FileDescriptor descriptor_;
  Watcher watcher_;  // behind the descriptor, since it goes first
  bool connecting_ = false;
  bool readable_ = false;
  bool writable_ = false;
  bool hung_up_ = false;
  bool broken_ = false;
  bool ended_ = false;  // the end has been read
};

}  // namespace sluice::net
