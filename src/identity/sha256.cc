#include "identity/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace sluice::identity {
namespace {

[[noreturn]] void no_sha256() noexcept {
  std::fputs("OpenSSL offers no SHA-256\n", stderr);
  std::abort();
}

std::string_view view(const Sha256Bytes& bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const noexcept { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  const bool begun = context_ != nullptr && algorithm != nullptr &&
                     EVP_DigestInit_ex2(context_.get(), algorithm, nullptr) == 1;
  EVP_MD_free(algorithm);  // the context holds a reference of its own
  if (!begun) no_sha256();
}

Sha256Bytes Sha256::operator()(std::string_view first, std::string_view second) noexcept {
  Sha256Bytes bytes{};
  // Without an algorithm it begins the one it has anew, in the memory it has.
  const bool done = EVP_DigestInit_ex2(context_.get(), nullptr, nullptr) == 1 &&
                    EVP_DigestUpdate(context_.get(), first.data(), first.size()) == 1 &&
                    EVP_DigestUpdate(context_.get(), second.data(), second.size()) == 1 &&
                    EVP_DigestFinal_ex(context_.get(), bytes.data(), nullptr) == 1;
  if (!done) no_sha256();
  return bytes;
}

HmacSecret::HmacSecret(std::string_view secret, Sha256& sha) {
  std::array<char, kBlock> key{};
  if (secret.size() > kBlock) {
    const Sha256Bytes shortened = sha(secret);
    std::copy(shortened.begin(), shortened.end(), key.begin());
  } else {
    std::copy(secret.begin(), secret.end(), key.begin());
  }
  const auto mixed_with = [](char mask) {
    return [mask](char c) { return static_cast<char>(c ^ mask); };
  };
  std::transform(key.begin(), key.end(), inner_.begin(), mixed_with(0x36));
  std::transform(key.begin(), key.end(), outer_.begin(), mixed_with(0x5c));
  OPENSSL_cleanse(key.data(), key.size());
}

Sha256Bytes HmacSecret::operator()(std::string_view message, Sha256& sha) const noexcept {
  const Sha256Bytes inside = sha({inner_.data(), inner_.size()}, message);
  return sha({outer_.data(), outer_.size()}, view(inside));
}

bool equal_in_constant_time(const Sha256Bytes& a, const Sha256Bytes& b) noexcept {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace sluice::identity
