#include "support/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace sluice::testing {
namespace {

constexpr long kDaySeconds = 24 * 60 * 60;

using Key = std::shared_ptr<EVP_PKEY>;
using Certificate = std::shared_ptr<X509>;

void require(bool held, const char* what) {
  if (!held) throw std::runtime_error{what};
}

Key new_key() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

void set_serial(X509* certificate) {
  std::uint32_t number = 0;
  require(RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof number) == 1, "random");
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), number);
}

void set_name(X509* certificate, const std::string& common_name) {
  if (common_name.empty()) return;  // it has other names
  X509_NAME* const name = X509_get_subject_name(certificate);
  const auto* const text = reinterpret_cast<const unsigned char*>(common_name.c_str());
  require(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1, "name");
}

void extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension{
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()), X509_EXTENSION_free};
  require(extension != nullptr, "extension");
  require(X509_add_ext(certificate, extension.get(), -1) == 1, "extension");
}

Certificate new_certificate(const CertificateWish& wish, EVP_PKEY* key) {
  Certificate certificate{X509_new(), X509_free};
  X509_set_version(certificate.get(), X509_VERSION_3);
  set_serial(certificate.get());
  set_name(certificate.get(), wish.common_name);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -2 * kDaySeconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), wish.expired ? -kDaySeconds : kDaySeconds);
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

void sign(X509* certificate, X509* issuer, EVP_PKEY* key) {
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  require(X509_sign(certificate, key, EVP_sha256()) > 0, "signature");
}

template <class Write>
void write_file(const std::string& path, Write&& write) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "wb"),
                                                             std::fclose};
  require(file != nullptr && write(file.get()) == 1, "file");
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

Authority::Authority(const TempFolder& folder, const std::string& name)
    : folder_(folder), file_(folder.file(name + ".pem")), key_(new_key()) {
  certificate_ = new_certificate({.common_name = name}, key_.get());
  extend(certificate_.get(), certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  sign(certificate_.get(), certificate_.get(), key_.get());
  write_file(file_, [this](std::FILE* file) { return PEM_write_X509(file, certificate_.get()); });
}

IssuedCertificate Authority::issue(const std::string& name, const CertificateWish& wish) const {
  const Key key = new_key();
  const Certificate certificate = new_certificate(wish, key.get());
  if (!wish.names.empty()) {
    extend(certificate.get(), certificate_.get(), NID_subject_alt_name, joined(wish.names));
  }
  sign(certificate.get(), certificate_.get(), key_.get());
  IssuedCertificate files{.chain = folder_.file(name + ".pem"), .key = folder_.file(name + ".key")};
  write_file(files.chain, [&](std::FILE* file) { return PEM_write_X509(file, certificate.get()); });
  write_file(files.key, [&](std::FILE* file) {
    return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return files;
}

}  // namespace sluice::testing
