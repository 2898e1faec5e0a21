// Certificates and keys from files, with words for everything that can be wrong with them.
//
// For the control road.
#pragma once

#include "crypto/openssl_owned.h"
#include <sluice/diagnostic.h>

#include <string>
#include <vector>

namespace sluice::net {

struct CertificateFiles {
  std::string cert_file;  // PEM: the own certificate first, then its chain
  std::string key_file;   // PEM, without a password
};

// At least one.
[[nodiscard]] Parsed<std::vector<crypto::OwnedCertificate>> read_certificates(
    const std::string& path);
// The same of what was read already; messages name the path.
[[nodiscard]] Parsed<std::vector<crypto::OwnedCertificate>> parse_certificates(
    const std::string& text, const std::string& path);
[[nodiscard]] Parsed<crypto::OwnedKey> read_key(const std::string& path);

// The context presents this certificate from now on.
[[nodiscard]] Parsed<void> use_certificate(SSL_CTX& context, const CertificateFiles& files);
// Peers are trusted if one of these CAs has signed their certificate.
[[nodiscard]] Parsed<void> trust_authorities(SSL_CTX& context, const std::string& path);
[[nodiscard]] Parsed<void> trust_authorities(
    SSL_CTX& context, const std::vector<crypto::OwnedCertificate>& authorities,
    const std::string& path);

// The names that a certificate is for, in lower case: those of its DNS entries, `*.` included.
[[nodiscard]] std::vector<std::string> names_of(X509& certificate);

}  // namespace sluice::net
