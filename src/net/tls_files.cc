#include "net/tls_files.h"

#include "base/characters.h"
#include "base/read_file.h"
#include "base/text.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <string_view>

namespace sluice::net {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{4} << 20U;  // the system's CAs have 0.2 MiB

// There is no terminal to ask for a password.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) { return -1; }

crypto::OwnedBio reader(const std::string& text) {
  return crypto::OwnedBio{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
}

// What OpenSSL says, without leaving it there for the next who asks.
std::string openssl_reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason != nullptr ? reason : "unknown error";
}

std::vector<crypto::OwnedCertificate> certificates_in(BIO* input) {
  std::vector<crypto::OwnedCertificate> certificates;
  while (X509* const one = PEM_read_bio_X509(input, nullptr, no_password, nullptr)) {
    certificates.emplace_back(one);
  }
  return certificates;
}

// Reading ends by an error in any case: that nothing more begins is the good one.
bool ended_well() noexcept {
  const unsigned long error = ERR_peek_last_error();
  const bool well = error == 0 || ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (well) ERR_clear_error();
  return well;
}

}  // namespace

Parsed<std::vector<crypto::OwnedCertificate>> read_certificates(const std::string& path) {
  const Parsed<std::string> text = read_file(path, kFileBytesMax);
  if (!text) return tl::unexpected(text.error());
  return parse_certificates(*text, path);
}

Parsed<std::vector<crypto::OwnedCertificate>> parse_certificates(const std::string& text,
                                                                 const std::string& path) {
  ERR_clear_error();
  std::vector<crypto::OwnedCertificate> certificates = certificates_in(reader(text).get());
  if (!ended_well()) {
    return mistake("certificate number " + std::to_string(certificates.size() + 1) + " in " +
                       quoted(path) + " cannot be read: " + openssl_reason(),
                   "copy the file again");
  }
  if (certificates.empty()) {
    return mistake(quoted(path) + " holds no certificate in PEM",
                   "it has a line -----BEGIN CERTIFICATE-----");
  }
  return certificates;
}

Parsed<crypto::OwnedKey> read_key(const std::string& path) {
  const Parsed<std::string> text = read_file(path, kFileBytesMax);
  if (!text) return tl::unexpected(text.error());
  ERR_clear_error();
  crypto::OwnedKey key{PEM_read_bio_PrivateKey(reader(*text).get(), nullptr, no_password, nullptr)};
  const bool encrypted = text->find("ENCRYPTED") != std::string::npos;
  if (key == nullptr && encrypted) {
    ERR_clear_error();
    return mistake("the key in " + quoted(path) + " needs a password",
                   "store it without, readable for this program alone");
  }
  if (key == nullptr) {
    ERR_clear_error();
    return mistake(quoted(path) + " holds no private key in PEM",
                   "it has a line -----BEGIN PRIVATE KEY-----");
  }
  return key;
}

Parsed<void> use_certificate(SSL_CTX& context, const CertificateFiles& files) {
  const Parsed<std::vector<crypto::OwnedCertificate>> chain = read_certificates(files.cert_file);
  if (!chain) return tl::unexpected(chain.error());
  const Parsed<crypto::OwnedKey> key = read_key(files.key_file);
  if (!key) return tl::unexpected(key.error());
  if (X509_check_private_key(chain->front().get(), key->get()) != 1) {
    ERR_clear_error();
    return mistake("the key in " + quoted(files.key_file) +
                       " does not belong to the first certificate in " + quoted(files.cert_file),
                   "give the two that were made together, the own certificate first");
  }
  if (SSL_CTX_use_certificate(&context, chain->front().get()) != 1 ||
      SSL_CTX_use_PrivateKey(&context, key->get()) != 1) {
    return mistake("the certificate in " + quoted(files.cert_file) +
                   " cannot be used: " + openssl_reason());
  }
  for (auto above = chain->begin() + 1; above != chain->end(); ++above) {
    if (SSL_CTX_add1_chain_cert(&context, above->get()) != 1) {
      return mistake("the chain in " + quoted(files.cert_file) +
                     " cannot be used: " + openssl_reason());
    }
  }
  return {};
}

Parsed<void> trust_authorities(SSL_CTX& context, const std::string& path) {
  const Parsed<std::vector<crypto::OwnedCertificate>> authorities = read_certificates(path);
  if (!authorities) return tl::unexpected(authorities.error());
  return trust_authorities(context, *authorities, path);
}

Parsed<void> trust_authorities(SSL_CTX& context,
                               const std::vector<crypto::OwnedCertificate>& authorities,
                               const std::string& path) {
  for (const crypto::OwnedCertificate& authority : authorities) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(&context), authority.get()) != 1) {
      return mistake("a CA certificate in " + quoted(path) +
                     " cannot be used: " + openssl_reason());
    }
  }
  return {};
}

std::vector<std::string> names_of(X509& certificate) {
  std::vector<std::string> names;
  const crypto::Owned<GENERAL_NAMES, GENERAL_NAMES_free> entries{static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr))};
  for (int i = 0; i < sk_GENERAL_NAME_num(entries.get()); ++i) {
    const GENERAL_NAME* const entry = sk_GENERAL_NAME_value(entries.get(), i);
    if (entry->type != GEN_DNS) continue;
    const ASN1_STRING* const text = entry->d.dNSName;
    std::string name{reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<std::size_t>(ASN1_STRING_length(text))};
    std::transform(name.begin(), name.end(), name.begin(), lower);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace sluice::net
