// TLS of a client: trusted CAs, and its own certificate.
//
// Immutable; one per worker is faster than one for all (tls_server.h).
#pragma once

#include "crypto/openssl_owned.h"
#include "net/tls_files.h"
#include "net/tls_server.h"
#include <sluice/diagnostic.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::net {

struct TlsClientOptions {
  // Off only where man-in-the-middle attacks are no concern.
  bool verify = true;
  std::string ca_file;  // empty: the CAs of the system
  std::optional<CertificateFiles> certificate;
  std::vector<std::string> protocols{"http/1.1"};  // ALPN, best first
  TlsVersion minimum = TlsVersion::tls1_2;
};

class TlsClient {
 public:
  [[nodiscard]] static Parsed<std::shared_ptr<const TlsClient>> load(
      const TlsClientOptions& options);

  // For a connection to the host of this name or address, which the certificate has to bear. Null
  // if OpenSSL has no memory or the name is none.
  [[nodiscard]] crypto::OwnedSsl new_ssl(const std::string& host) const noexcept;

 private:
  TlsClient(crypto::OwnedContext context, bool verify)
      : context_(std::move(context)), verify_(verify) {}

  crypto::OwnedContext context_;
  bool verify_;
};

}  // namespace sluice::net
