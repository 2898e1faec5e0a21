// Certificates and keys from files, with words for everything that can be wrong with them.
//
// For the control road.
#pragma once

#include "net/openssl_owned.h"
#include <sluice/diagnostic.h>

#include <string>
#include <vector>

namespace sluice::net {

struct CertificateFiles {
  std::string chain;  // PEM: the own certificate first, then those that lead to a known authority
  std::string key;    // PEM, without a password
};

// At least one.
[[nodiscard]] Parsed<std::vector<OwnedCertificate>> read_certificates(const std::string& path);
[[nodiscard]] Parsed<OwnedKey> read_key(const std::string& path);

// The context presents this certificate from now on.
[[nodiscard]] Parsed<void> use_certificate(SSL_CTX& context, const CertificateFiles& files);
// Peers are trusted if one of these certificates vouches for them.
[[nodiscard]] Parsed<void> trust_authorities(SSL_CTX& context, const std::string& path);

// The names that a certificate is for, in lower case: those of its DNS entries, `*.` included.
[[nodiscard]] std::vector<std::string> names_of(X509& certificate);

}  // namespace sluice::net
