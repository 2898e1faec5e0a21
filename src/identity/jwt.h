// Tokens that clients carry (JWT, RFC 7519, signed as in RFC 7515), checked.
//
// Nothing in a token is believed before its signature is checked: until then only the header is
// read, and of that only which algorithm and key to use. The algorithm must be allowed and the
// key's own. Immutable, so threads may share it. Checking allocates and costs from ten to a hundred
// microseconds: TokenCache is what makes it affordable.
#pragma once

#include "identity/flat_json.h"
#include "identity/verification_key.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::identity {

struct TokenPolicy {
  std::vector<TokenAlgorithm> algorithms;  // empty: those of the keys
  std::vector<std::string> issuers;        // `iss` must be one of these; empty: any
  std::vector<std::string> audiences;      // `aud` must contain one of these; empty: any
  std::vector<std::string> required{"exp"};
  Nanos clock_skew = std::chrono::seconds{30};  // between our clock and the issuer's
  std::string user_claim = "sub";
  std::string tenant_claim;  // empty: none; likewise below
  std::string tier_claim;
  std::size_t token_bytes_max = 8192;
};

enum class TokenFault : std::uint8_t {
  none,
  too_long,
  malformed,      // not three parts of base64url, or a header that cannot be read
  algorithm,      // it is not allowed
  unknown_key,    // no key fits; perhaps the issuer has new ones
  unnamed_key,    // the token names none, and not all can be tried
  signature,      // forged, or signed by another issuer
  claims,         // signed, but not strict JSON, or of wrong types
  missing_claim,  // a required claim is absent
  expired,
  not_yet_valid,
  issuer,
  audience,
};

// For people; static text.
[[nodiscard]] std::string_view to_string(TokenFault fault) noexcept;

struct TokenVerdict {
  TokenFault fault = TokenFault::none;

  // Of a good token only. The texts are views into the claims.
  std::unique_ptr<const FlatJson> claims;
  std::string_view user;
  std::string_view tenant;
  std::string_view tier;
  WallTime expires = kWallTimeEnd;  // clock_skew included
};

class TokenVerifier {
 public:
  // Rejects keys of which some could never be tried: more than 8 of one algorithm without different
  // kids.
  [[nodiscard]] static Parsed<TokenVerifier> create(TokenPolicy policy,
                                                    std::vector<VerificationKey> keys);

  [[nodiscard]] TokenVerdict verify(std::string_view token, WallTime now) const;
  [[nodiscard]] const TokenPolicy& policy() const noexcept { return policy_; }

 private:
  TokenVerifier(TokenPolicy policy, std::vector<VerificationKey> keys)
      : policy_(std::move(policy)), keys_(std::move(keys)) {}

  [[nodiscard]] bool allows(TokenAlgorithm algorithm) const noexcept;
  [[nodiscard]] TokenFault check_signature(std::string_view header_json, std::string_view message,
                                           std::string_view signature) const;
  [[nodiscard]] TokenFault try_named(TokenAlgorithm algorithm, std::string_view kid,
                                     std::string_view message, std::string_view signature) const;
  [[nodiscard]] TokenFault try_unnamed(TokenAlgorithm algorithm, std::string_view message,
                                       std::string_view signature) const;
  [[nodiscard]] TokenFault check_claims(const FlatJson& claims, WallTime now,
                                        WallTime& expires) const;

  TokenPolicy policy_;
  std::vector<VerificationKey> keys_;
};

}  // namespace sluice::identity
