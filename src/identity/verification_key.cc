#include "identity/verification_key.h"

#include "base/text.h"
#include "crypto/openssl_owned.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>
#include <utility>

namespace sluice::identity {
namespace {

constexpr std::size_t kHmacSecretBytesMin = 32;
constexpr int kRsaBitsMin = 2048;
constexpr int kRsaBitsMax = 8192;  // a larger one makes every forged token expensive to reject
constexpr std::size_t kP256Bytes = 32;
constexpr std::size_t kExponentBytesMax = 8;

using SharedKey = std::shared_ptr<EVP_PKEY>;

SharedKey shared(EVP_PKEY* key) { return {key, EVP_PKEY_free}; }

const unsigned char* bytes_of(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

crypto::OwnedNumber number_of(std::string_view big_endian) noexcept {
  return crypto::OwnedNumber{
      BN_bin2bn(bytes_of(big_endian), static_cast<int>(big_endian.size()), nullptr)};
}

SharedKey key_from(const char* type, OSSL_PARAM_BLD* builder) {
  const crypto::OwnedParams params{OSSL_PARAM_BLD_to_param(builder)};
  const crypto::OwnedKeyContext context{EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr)};
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    ERR_clear_error();
    return nullptr;
  }
  return shared(key);
}

// There is no terminal to ask for a password.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) { return -1; }

SharedKey key_from_pem(std::string_view pem) {
  const crypto::OwnedBio input{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  EVP_PKEY* key = PEM_read_bio_PUBKEY(input.get(), nullptr, no_password, nullptr);
  if (key == nullptr) {
    (void)BIO_reset(input.get());
    const crypto::OwnedCertificate certificate{
        PEM_read_bio_X509(input.get(), nullptr, no_password, nullptr)};
    if (certificate != nullptr) key = X509_get_pubkey(certificate.get());
  }
  ERR_clear_error();
  return shared(key);
}

bool is_p256(const EVP_PKEY* key) noexcept {
  std::array<char, 64> group{};
  std::size_t size = 0;
  return EVP_PKEY_get_group_name(key, group.data(), group.size(), &size) == 1 &&
         std::string_view{group.data(), size} == "prime256v1";
}

bool verify_hmac(std::string_view secret, std::string_view message,
                 std::string_view signature) noexcept {
  std::array<unsigned char, 32> expected{};
  if (signature.size() != expected.size()) return false;
  unsigned size = expected.size();
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), bytes_of(message),
           message.size(), expected.data(), &size) == nullptr) {
    return false;
  }
  return CRYPTO_memcmp(expected.data(), signature.data(), expected.size()) == 0;
}

bool verify_by(EVP_PKEY* key, const EVP_MD* digest, std::string_view message,
               std::string_view signature) noexcept {
  const crypto::OwnedDigestContext context{EVP_MD_CTX_new()};
  const bool good = context != nullptr &&
                    EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key) == 1 &&
                    EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(),
                                     bytes_of(message), message.size()) == 1;
  if (!good) ERR_clear_error();
  return good;
}

// Tokens carry the two numbers of the signature in a row, OpenSSL wants them in DER.
bool verify_p256(EVP_PKEY* key, std::string_view message, std::string_view signature) noexcept {
  if (signature.size() != 2 * kP256Bytes) return false;
  const crypto::OwnedSignature both{ECDSA_SIG_new()};
  BIGNUM* const r = number_of(signature.substr(0, kP256Bytes)).release();
  BIGNUM* const s = number_of(signature.substr(kP256Bytes)).release();
  if (both == nullptr || r == nullptr || s == nullptr || ECDSA_SIG_set0(both.get(), r, s) != 1) {
    BN_free(r);  // otherwise the signature owns them
    BN_free(s);
    return false;
  }
  std::array<unsigned char, 80> der{};  // two numbers of up to 33 bytes and three headers of 2
  unsigned char* end = der.data();
  const int size = i2d_ECDSA_SIG(both.get(), nullptr);
  if (size <= 0 || size > static_cast<int>(der.size())) return false;
  (void)i2d_ECDSA_SIG(both.get(), &end);
  return verify_by(key, EVP_sha256(), message,
                   {reinterpret_cast<const char*>(der.data()), static_cast<std::size_t>(size)});
}

}  // namespace

std::string_view to_string(TokenAlgorithm algorithm) noexcept {
  switch (algorithm) {
    case TokenAlgorithm::hs256: return "HS256";
    case TokenAlgorithm::rs256: return "RS256";
    case TokenAlgorithm::es256: return "ES256";
    case TokenAlgorithm::eddsa: return "EdDSA";
  }
  return "unknown";
}

std::optional<TokenAlgorithm> parse_token_algorithm(std::string_view name) noexcept {
  for (const TokenAlgorithm one : {TokenAlgorithm::hs256, TokenAlgorithm::rs256,
                                   TokenAlgorithm::es256, TokenAlgorithm::eddsa}) {
    if (name == to_string(one)) return one;
  }
  return std::nullopt;
}

Parsed<VerificationKey> VerificationKey::from_secret(std::string_view secret, std::string kid) {
  if (secret.find("-----BEGIN") != std::string_view::npos) {
    return mistake("a key in PEM is given as the secret of HS256",
                   "give it as a public key, or use a random secret");
  }
  if (secret.size() < kHmacSecretBytesMin) {
    return mistake("the secret of HS256 has " + std::to_string(secret.size()) + " bytes",
                   "use 32 random bytes or more");
  }
  VerificationKey key{TokenAlgorithm::hs256, std::move(kid)};
  key.secret_ = secret;
  return key;
}

Parsed<VerificationKey> VerificationKey::from_public_key(SharedKey key, std::string kid) {
  if (EVP_PKEY_is_a(key.get(), "RSA") == 1) {
    const int bits = EVP_PKEY_get_bits(key.get());
    if (bits < kRsaBitsMin || bits > kRsaBitsMax) {
      return mistake("an RSA key has " + std::to_string(bits) + " bits",
                     "use one of 2048 to 8192 bits");
    }
    VerificationKey result{TokenAlgorithm::rs256, std::move(kid)};
    result.key_ = std::move(key);
    return result;
  }
  if (EVP_PKEY_is_a(key.get(), "EC") == 1 && is_p256(key.get())) {
    VerificationKey result{TokenAlgorithm::es256, std::move(kid)};
    result.key_ = std::move(key);
    return result;
  }
  if (EVP_PKEY_is_a(key.get(), "ED25519") == 1) {
    VerificationKey result{TokenAlgorithm::eddsa, std::move(kid)};
    result.key_ = std::move(key);
    return result;
  }
  return mistake("a public key is of an unknown sort", "use RSA, P-256 or Ed25519");
}

Parsed<VerificationKey> VerificationKey::from_pem(std::string_view pem, std::string kid) {
  if (pem.find("PRIVATE KEY-----") != std::string_view::npos) {
    return mistake("a private key is given to check tokens with",
                   "give the public one, as `openssl pkey -pubout` prints it");
  }
  SharedKey key = key_from_pem(pem);
  if (key == nullptr) {
    return mistake("a public key in PEM cannot be read",
                   "it begins with -----BEGIN PUBLIC KEY----- or -----BEGIN CERTIFICATE-----");
  }
  return from_public_key(std::move(key), std::move(kid));
}

Parsed<VerificationKey> VerificationKey::from_rsa(std::string_view n, std::string_view e,
                                                  std::string kid) {
  // An exponent of 1 would make every message its own signature.
  const bool odd = !e.empty() && (static_cast<unsigned char>(e.back()) & 1U) != 0;
  const crypto::OwnedNumber modulus = number_of(n.substr(0, kRsaBitsMax / 8 + 1));
  const crypto::OwnedNumber exponent = number_of(e.substr(0, kExponentBytesMax));
  if (!odd || e.size() > kExponentBytesMax || exponent == nullptr || BN_is_one(exponent.get())) {
    return mistake("the exponent of an RSA key is not one", "the usual one is AQAB");
  }
  const crypto::OwnedParamBuilder builder{OSSL_PARAM_BLD_new()};
  if (modulus == nullptr || BN_is_odd(modulus.get()) == 0 || builder == nullptr ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1) {
    return mistake("the modulus of an RSA key is not one", "export the key again");
  }
  SharedKey key = key_from("RSA", builder.get());
  if (key == nullptr) return mistake("an RSA key cannot be used", "export the key again");
  return from_public_key(std::move(key), std::move(kid));
}

Parsed<VerificationKey> VerificationKey::from_p256(std::string_view x, std::string_view y,
                                                   std::string kid) {
  const crypto::OwnedParamBuilder builder{OSSL_PARAM_BLD_new()};
  std::string point{'\x04'};  // not compressed
  point += x;
  point += y;
  if (x.size() != kP256Bytes || y.size() != kP256Bytes || builder == nullptr ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) !=
          1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1) {
    return mistake("a coordinate of a P-256 key has not 32 bytes", "export the key again");
  }
  SharedKey key = key_from("EC", builder.get());
  if (key == nullptr) return mistake("a P-256 key is not on the curve", "export the key again");
  return from_public_key(std::move(key), std::move(kid));
}

Parsed<VerificationKey> VerificationKey::from_ed25519(std::string_view x, std::string kid) {
  SharedKey key =
      shared(EVP_PKEY_new_raw_public_key_ex(nullptr, "ED25519", nullptr, bytes_of(x), x.size()));
  if (key == nullptr) {
    ERR_clear_error();
    return mistake("an Ed25519 key has not 32 bytes", "export the key again");
  }
  return from_public_key(std::move(key), std::move(kid));
}

bool VerificationKey::verify(std::string_view message, std::string_view signature) const noexcept {
  switch (algorithm_) {
    case TokenAlgorithm::hs256: return verify_hmac(secret_, message, signature);
    case TokenAlgorithm::rs256: return verify_by(key_.get(), EVP_sha256(), message, signature);
    case TokenAlgorithm::es256: return verify_p256(key_.get(), message, signature);
    case TokenAlgorithm::eddsa: return verify_by(key_.get(), nullptr, message, signature);
  }
  return false;
}

}  // namespace sluice::identity
