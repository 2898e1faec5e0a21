// Keys that sign tokens, and the tokens: what an issuer does, for tests.
#pragma once

#include "base/base64.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::testing {

inline std::string base64url(std::string_view bytes) {
  std::string text(base64_encoded_size(bytes.size()), '\0');
  (void)encode_base64url(bytes, text);
  return text;
}

class IssuerKey {
 public:
  static IssuerKey hmac(std::string secret) {
    IssuerKey key{"HS256", nullptr};
    key.secret_ = std::move(secret);
    return key;
  }
  static IssuerKey rsa(unsigned bits = 2048) { return {"RS256", EVP_RSA_gen(bits)}; }
  static IssuerKey p256() { return {"ES256", EVP_EC_gen("P-256")}; }
  static IssuerKey ed25519() { return {"EdDSA", EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")}; }

  [[nodiscard]] const std::string& algorithm() const { return algorithm_; }

  [[nodiscard]] std::string sign(std::string_view message) const {
    const auto* data = reinterpret_cast<const unsigned char*>(message.data());
    std::vector<unsigned char> out(2048);
    if (key_ == nullptr) {
      unsigned size = 0;
      HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), data, message.size(),
           out.data(), &size);
      return {out.begin(), out.begin() + size};
    }
    std::size_t size = out.size();
    EVP_MD_CTX* const context = EVP_MD_CTX_new();
    EVP_DigestSignInit(context, nullptr, algorithm_ == "EdDSA" ? nullptr : EVP_sha256(), nullptr,
                       key_.get());
    const int signed_well = EVP_DigestSign(context, out.data(), &size, data, message.size());
    EVP_MD_CTX_free(context);
    if (signed_well != 1) throw std::runtime_error{"cannot sign"};
    out.resize(size);
    return algorithm_ == "ES256" ? raw(out) : std::string{out.begin(), out.end()};
  }

  [[nodiscard]] std::string token(std::string_view header, std::string_view payload) const {
    const std::string message = base64url(header) + "." + base64url(payload);
    return message + "." + base64url(sign(message));
  }
  [[nodiscard]] std::string token(std::string_view payload) const {
    return token("{\"alg\":\"" + algorithm_ + "\"}", payload);
  }

  [[nodiscard]] std::string public_pem() const { return pem(PEM_write_bio_PUBKEY); }
  [[nodiscard]] std::string private_pem() const {
    return pem([](BIO* out, const EVP_PKEY* key) {
      return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
  }

  // As a member of a JWKS; `more` as in ,"kid":"1".
  [[nodiscard]] std::string jwk(const std::string& more = {}) const {
    if (algorithm_ == "HS256") {
      return R"({"kty":"oct","k":")" + base64url(secret_) + "\"" + more + "}";
    }
    if (algorithm_ == "RS256") {
      return R"({"kty":"RSA","n":")" + number(OSSL_PKEY_PARAM_RSA_N) + R"(","e":")" +
             number(OSSL_PKEY_PARAM_RSA_E) + "\"" + more + "}";
    }
    if (algorithm_ == "ES256") {
      return R"({"kty":"EC","crv":"P-256","x":")" + number(OSSL_PKEY_PARAM_EC_PUB_X, 32) +
             R"(","y":")" + number(OSSL_PKEY_PARAM_EC_PUB_Y, 32) + "\"" + more + "}";
    }
    std::string x(32, '\0');
    std::size_t size = x.size();
    EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(x.data()), &size);
    return R"({"kty":"OKP","crv":"Ed25519","x":")" + base64url(x) + "\"" + more + "}";
  }

 private:
  IssuerKey(std::string algorithm, EVP_PKEY* key)
      : algorithm_(std::move(algorithm)), key_(key, EVP_PKEY_free) {}

  // The two numbers of an ECDSA signature in a row, as tokens have them.
  static std::string raw(const std::vector<unsigned char>& der) {
    const unsigned char* begin = der.data();
    ECDSA_SIG* const signature = d2i_ECDSA_SIG(nullptr, &begin, static_cast<long>(der.size()));
    std::string both(64, '\0');
    auto* out = reinterpret_cast<unsigned char*>(both.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(signature), out, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(signature), out + 32, 32);
    ECDSA_SIG_free(signature);
    return both;
  }

  [[nodiscard]] std::string number(const char* name, int width = 0) const {
    BIGNUM* value = nullptr;
    EVP_PKEY_get_bn_param(key_.get(), name, &value);
    const int size = width > 0 ? width : BN_num_bytes(value);
    std::string bytes(static_cast<std::size_t>(size), '\0');
    BN_bn2binpad(value, reinterpret_cast<unsigned char*>(bytes.data()), size);
    BN_free(value);
    return base64url(bytes);
  }

  template <class Write>
  [[nodiscard]] std::string pem(Write write) const {
    BIO* const out = BIO_new(BIO_s_mem());
    write(out, key_.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(out, &data);
    std::string text{data, static_cast<std::size_t>(size)};
    BIO_free(out);
    return text;
  }

  std::string algorithm_;
  std::string secret_;
  std::shared_ptr<EVP_PKEY> key_;
};

}  // namespace sluice::testing
