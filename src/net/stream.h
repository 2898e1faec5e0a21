// A connection, plain or with TLS; its user need not know which.
//
// The owner is called when something becomes possible that was not before, and then reads and
// writes until an attempt is blocked. It may stop earlier, but then it has to go on by itself:
// while `can_read` holds, it is not called to read. It may end the stream any time, also from
// inside that call. No buffers: bytes go between the owner's and the system's. One thread; not
// movable.
#pragma once

#include "net/io_result.h"
#include "net/socket.h"
#include "net/tls_session.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sluice::net {

class Stream {
 public:
  explicit Stream(Callback<> on_ready) noexcept : socket_(on_ready) {}

  // Owns a connected, nonblocking descriptor.
  [[nodiscard]] IoResult open(EventLoop& loop, FileDescriptor descriptor) noexcept;
  // Begins to connect; `establish` tells when it is done. How long that may take is up to a timer
  // of the owner.
  [[nodiscard]] IoResult connect(EventLoop& loop, const SocketAddress& address) noexcept;

  // All that follows goes through TLS. False if OpenSSL has no memory, or the name is none.
  [[nodiscard]] bool start_tls(std::shared_ptr<const TlsServer> server);
  [[nodiscard]] bool start_tls(const TlsClient& client, const std::string& host);

  // Behind a handshake that failed: what follows is plain. The peer hears nothing of it.
  void drop_tls() noexcept { tls_.reset(); }

  // Done once the connection stands and the handshake, if any, is over.
  [[nodiscard]] IoResult establish() noexcept;
  [[nodiscard]] IoResult read(std::span<char> into) noexcept;
  // What stands before TLS: the bytes stay unread. Too few of them: wait for more, and try again.
  [[nodiscard]] IoResult peek(std::span<char> into) noexcept { return socket_.peek(into); }
  void wait_for_more() noexcept { socket_.wait_for_more(); }
  // Nothing has come that was not read, not even the end, told or not.
  [[nodiscard]] bool is_silent() const noexcept { return !can_read() && socket_.is_silent(); }
  // Done means that some bytes were sent, not all. With TLS, blocked bytes have to be offered
  // again, with or without more behind them.
  [[nodiscard]] IoResult write(std::span<const iovec> parts) noexcept;
  [[nodiscard]] IoResult write(std::string_view bytes) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  [[nodiscard]] bool can_read() const noexcept;
  [[nodiscard]] bool can_write() const noexcept { return socket_.can_write(); }
  // The peer will send nothing more; it may still read.
  [[nodiscard]] bool peer_hung_up() const noexcept { return socket_.peer_hung_up(); }
  // Nothing goes either way any more: the peer is gone.
  [[nodiscard]] bool is_broken() const noexcept { return socket_.is_broken(); }
  // Bytes on their way that the peer's system has not taken.
  [[nodiscard]] std::size_t unsent() const noexcept { return socket_.unsent(); }
  // Null on plain connections.
  [[nodiscard]] const TlsSession* tls() const noexcept { return tls_.get(); }

  // The peer reads the end of the stream after all written bytes; we may still read.
  void finish_writing() noexcept;
  // Unread bytes of the peer turn this into a reset, which may destroy a response on its way;
  // lingering.h avoids that.
  void close() noexcept;
  // Without a farewell: the peer reads an error, and nothing of the connection remains here.
  void reset() noexcept;
  // After the farewell, the bare descriptor.
  [[nodiscard]] FileDescriptor release() noexcept;

 private:
  Socket socket_;
  std::unique_ptr<TlsSession> tls_;
};

}  // namespace sluice::net
