// A key that checks signatures of tokens.
//
// A key knows its one algorithm, told by what it is and never by the token: a public key cannot be
// misused as the secret of an HMAC, and "none" is no algorithm at all. Immutable, so threads may
// share it; checking allocates inside OpenSSL.
#pragma once

#include <sluice/diagnostic.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_pkey_st;

namespace sluice::identity {

enum class TokenAlgorithm : std::uint8_t { hs256, rs256, es256, eddsa };

// As tokens write them: HS256, RS256, ES256, EdDSA.
[[nodiscard]] std::string_view to_string(TokenAlgorithm algorithm) noexcept;
[[nodiscard]] std::optional<TokenAlgorithm> parse_token_algorithm(std::string_view name) noexcept;

class VerificationKey {
 public:
  // HS256. At least 32 bytes, as RFC 7518 demands; a key in PEM is rejected, since anyone with the
  // public key could sign with it.
  [[nodiscard]] static Parsed<VerificationKey> from_secret(std::string_view secret,
                                                           std::string kid = {});
  // A public key or a certificate: RSA from 2048 to 8192 bits, P-256, Ed25519.
  [[nodiscard]] static Parsed<VerificationKey> from_pem(std::string_view pem, std::string kid = {});

  // From the numbers of a JWK, big-endian.
  [[nodiscard]] static Parsed<VerificationKey> from_rsa(std::string_view n, std::string_view e,
                                                        std::string kid);
  [[nodiscard]] static Parsed<VerificationKey> from_p256(std::string_view x, std::string_view y,
                                                         std::string kid);
  [[nodiscard]] static Parsed<VerificationKey> from_ed25519(std::string_view x, std::string kid);

  [[nodiscard]] TokenAlgorithm algorithm() const noexcept { return algorithm_; }
  [[nodiscard]] const std::string& kid() const noexcept { return kid_; }  // may be empty

  [[nodiscard]] bool verify(std::string_view message, std::string_view signature) const noexcept;

 private:
  VerificationKey(TokenAlgorithm algorithm, std::string kid)
      : algorithm_(algorithm), kid_(std::move(kid)) {}
  [[nodiscard]] static Parsed<VerificationKey> from_public_key(std::shared_ptr<evp_pkey_st> key,
                                                               std::string kid);

  TokenAlgorithm algorithm_;
  std::string kid_;
  std::string secret_;                // HS256
  std::shared_ptr<evp_pkey_st> key_;  // the others
};

}  // namespace sluice::identity
