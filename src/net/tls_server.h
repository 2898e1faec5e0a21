// What a server needs for TLS: certificates, chosen by the name a client asks for, and the rules of
// the protocol.
//
// TLS 1.2 and 1.3 without renegotiation, ciphers with forward secrecy and authentication only.
// Sessions live in tickets, never in a table: memory does not grow with clients. A session whose
// client certificate has expired is not resumed: its client has to authenticate again. To reload,
// load again and use the result for new connections; existing ones keep their context.
// Immutable, so workers share one; what they write to in it is OpenSSL's count of references, once
// or twice for each connection.
#pragma once

#include "crypto/openssl_owned.h"
#include "net/ticket_keys.h"
#include "net/tls_files.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::net {

enum class TlsVersion : std::uint8_t { tls1_2, tls1_3 };

enum class ClientAuth : std::uint8_t {
  off,
  optional,  // a certificate that is presented has to be good
  required,
};

struct TlsServerOptions {
  std::vector<CertificateFiles> certificates;      // the first also serves unknown names and none
  std::vector<std::string> protocols{"http/1.1"};  // ALPN, best first
  ClientAuth client_auth = ClientAuth::off;
  std::string client_ca_file;  // CAs of client certificates
  TlsVersion minimum = TlsVersion::tls1_2;
  std::shared_ptr<const TicketKeys> tickets;  // servers that share them resume one another's
                                              // sessions sessions; null: its own
  const Clock* clock = nullptr;  // tells whether a certificate has expired; null: the system's
};

class TlsServer {
 public:
  [[nodiscard]] static Parsed<std::shared_ptr<const TlsServer>> load(
      const TlsServerOptions& options);
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  ~TlsServer() = default;

  // The context for a name, in any case: an exact one, `*.` and what follows the first dot, or the
  // first.
  [[nodiscard]] SSL_CTX* context_for(std::string_view name) const noexcept;
  // In the format of ALPN.
  [[nodiscard]] const std::vector<unsigned char>& protocols() const noexcept { return protocols_; }
  [[nodiscard]] const TicketKeys& tickets() const noexcept { return *tickets_; }
  // Equal where clients are asked for certificates in the same way, of the same CAs. All zero where
  // they are not asked.
  using ClientTrust = std::array<unsigned char, 32>;  // SHA-256
  [[nodiscard]] const ClientTrust& client_trust() const noexcept { return client_trust_; }
  // Whether a session that authenticated its client by this certificate may still be resumed.
  [[nodiscard]] bool is_valid_now(const X509& certificate) const noexcept;

 private:
  TlsServer() = default;
  [[nodiscard]] Parsed<void> add(const CertificateFiles& files, const TlsServerOptions& options,
                                 const std::vector<crypto::OwnedCertificate>& client_cas);
  void remember_names(SSL_CTX& context);

  std::vector<crypto::OwnedContext> contexts_;
  std::map<std::string, SSL_CTX*, std::less<>> by_name_;
  std::vector<unsigned char> protocols_;
  std::shared_ptr<const TicketKeys> tickets_;
  const Clock* clock_ = nullptr;
  ClientTrust client_trust_{};
};

}  // namespace sluice::net
