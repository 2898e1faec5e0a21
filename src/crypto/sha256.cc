#include "crypto/sha256.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>

namespace sluice::crypto {

Sha256Bytes sha256(std::string_view first, std::string_view second) noexcept {
  Sha256Bytes bytes{};
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, first.data(), first.size());
  SHA256_Update(&context, second.data(), second.size());
  SHA256_Final(bytes.data(), &context);
  return bytes;
}

HmacSecret::HmacSecret(std::string_view secret) noexcept {
  std::array<char, kBlock> key{};
  if (secret.size() > kBlock) {
    const Sha256Bytes shortened = sha256(secret);
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

Sha256Bytes HmacSecret::operator()(std::string_view message) const noexcept {
  const Sha256Bytes inside = sha256({inner_.data(), inner_.size()}, message);
  return sha256({outer_.data(), outer_.size()},
                {reinterpret_cast<const char*>(inside.data()), inside.size()});
}

bool equal_in_constant_time(const Sha256Bytes& a, const Sha256Bytes& b) noexcept {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace sluice::crypto
