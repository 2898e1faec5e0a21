// Authorities and certificates of a test's own, in files.
#pragma once

#include "support/temp_folder.h"

#include <memory>
#include <string>
#include <vector>

struct evp_pkey_st;
struct x509_st;

namespace sluice::testing {

struct CertificateWish {
  std::string common_name;
  std::vector<std::string> names;  // "DNS:example.com", "IP:127.0.0.1"
  bool expired = false;
};

struct IssuedCertificate {
  std::string chain;  // paths of files
  std::string key;
};

// Signs certificates with keys on P-256. Everything lies in the folder, which outlives it.
class Authority {
 public:
  // Its own certificate, signed by itself, is file("NAME.pem").
  Authority(const TempFolder& folder, const std::string& name);

  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  // file("NAME.pem") and file("NAME.key"); what was there before is replaced.
  [[nodiscard]] IssuedCertificate issue(const std::string& name, const CertificateWish& wish) const;

 private:
  const TempFolder& folder_;
  std::string file_;
  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
};

}  // namespace sluice::testing
