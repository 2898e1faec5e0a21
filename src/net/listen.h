// Sockets that wait for connections. For the control road: all of this may block and allocate.
#pragma once

#include "base/file_descriptor.h"
#include "net/endpoint.h"
#include <sluice/diagnostic.h>

#include <string>
#include <sys/stat.h>
#include <utility>

namespace sluice::net {

struct ListenOptions {
  int backlog = 4096;       // the system cuts it to net.core.somaxconn
  bool reuse_port = false;  // several sockets on one port, one per worker; the system deals fairly
  mode_t unix_mode = 0660;  // of the file of a Unix socket
};

// Nonblocking. The file of a Unix socket is removed with it, unless another process has replaced
// it. One thread.
class Listener {
 public:
  Listener(FileDescriptor descriptor, Endpoint endpoint);
  // A socket of another process, whose file stays.
  [[nodiscard]] static Listener inherited(int descriptor);
  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&&) = delete;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
  [[nodiscard]] bool is_inherited() const noexcept { return is_inherited_; }
  // The same socket once more: the faster of the two gets a connection. Its file stays with the
  // first.
  [[nodiscard]] Parsed<Listener> share() const;
  // With the real port, if 0 was asked for.
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }

 private:
  FileDescriptor descriptor_;
  Endpoint endpoint_;
  dev_t device_ = 0;  // of the socket's file, to know it again
  ino_t inode_ = 0;
  bool is_inherited_ = false;
};

// `:8080` listens to IPv6 and IPv4, `[::]:8080` to IPv6 alone. The socket file that a dead process
// left is replaced, that of a living one is not. Accepted connections send at once (TCP_NODELAY)
// and are told of before the first byte (no TCP_DEFER_ACCEPT): a client that says nothing is to be
// counted and timed, not hidden.
[[nodiscard]] Parsed<Listener> listen_on(const Endpoint& endpoint,
                                         const ListenOptions& options = {});

// What a listening socket is bound to.
[[nodiscard]] Endpoint local_endpoint(int descriptor);

}  // namespace sluice::net
