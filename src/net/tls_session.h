// TLS on one socket, either side.
//
// OpenSSL reads from and writes to the socket itself, through a few functions of ours that know
// whether it is ready: no buffer lies in between and no system call is made in vain. An attempt to
// read may have to write, and the other way round; the owner need not care, since it is called when
// either becomes possible and tries again. One thread; not movable.
#pragma once

#include "crypto/openssl_owned.h"
#include "net/io_result.h"
#include "net/socket.h"
#include "net/tls_client.h"
#include "net/tls_server.h"
#include <sluice/time.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sluice::net {

class TlsSession {
 public:
  // The socket outlives the session. Null if OpenSSL has no memory, or the host's name is none.
  [[nodiscard]] static std::unique_ptr<TlsSession> accept(std::shared_ptr<const TlsServer> server,
                                                          Socket& socket);
  [[nodiscard]] static std::unique_ptr<TlsSession> connect(const TlsClient& client, Socket& socket,
                                                           const std::string& host);

  // Reading and writing do it by themselves; this is for owners that need the identity of the peer
  // first.
  [[nodiscard]] IoResult handshake() noexcept;
  [[nodiscard]] IoResult read(std::span<char> into) noexcept;
  // Blocked bytes have to be offered again, at the same place or another, with or without more
  // behind them: a part may be encrypted already.
  [[nodiscard]] IoResult write(std::span<const iovec> parts) noexcept;
  // Tells the peer that nothing follows, as far as that is possible at once.
  void finish_writing() noexcept;

  // There are bytes that were received and not yet read.
  [[nodiscard]] bool has_pending() const noexcept { return SSL_has_pending(ssl_.get()) == 1; }

  // Of the handshake; empty before it is done.
  [[nodiscard]] std::string_view protocol() const noexcept;     // what ALPN agreed on, or nothing
  [[nodiscard]] std::string_view version() const noexcept;      // TLSv1.3
  [[nodiscard]] std::string_view server_name() const noexcept;  // what the client asked for
  [[nodiscard]] bool is_resumed() const noexcept;
  // What came first began as a request of plain HTTP does, and no record of TLS: the handshake has
  // failed, or will.
  [[nodiscard]] bool began_as_http() const noexcept {
    return first_byte_ >= 'A' && first_byte_ <= 'Z';
  }
  // The subject of the certificate that the peer gave, as RFC 2253 writes it, or, where it has
  // none, its first alternative name (URI or DNS). Empty without a certificate.
  [[nodiscard]] std::string peer_subject() const;
  // The same, but empty for an unverified certificate.
  [[nodiscard]] std::string verified_subject() const;
  // When the peer's certificate expires: kWallTimeEnd without a certificate, and 1970 where its
  // date cannot be read.
  [[nodiscard]] WallTime peer_valid_until() const noexcept;

 private:
  TlsSession(crypto::OwnedSsl ssl, std::shared_ptr<const TlsServer> server,
             Socket& socket) noexcept;
  [[nodiscard]] bool attach() noexcept;
  [[nodiscard]] IoResult explain(int returned) noexcept;
  [[nodiscard]] IoResult write_one(std::span<const char> bytes) noexcept;

  friend struct SocketBio;

  std::shared_ptr<const TlsServer> server_;  // which OpenSSL calls during the handshake
  crypto::OwnedSsl ssl_;
  Socket& socket_;
  IoFailure socket_failure_;
  char first_byte_ = '\0';  // that came from the peer; 0: none has
  bool socket_ended_ = false;
  bool broken_ = false;  // nothing may be sent any more, not even a farewell
};

}  // namespace sluice::net
