#include "identity/jwt.h"

#include "base/base64.h"
#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

namespace sluice::identity {
namespace {

constexpr JsonLimits kHeaderLimits{.bytes_max = 4096, .members_max = 64, .depth_max = 4};
constexpr std::size_t kSignatureBytesMax = 1024;  // RSA of 8192 bits
// Where nothing tells keys apart, every one of them may be the one. The bounds keep a forged token
// cheap; that no key is left out in silence is seen to when they are loaded.
constexpr std::ptrdiff_t kAlikeKeysMax = 8;  // of one algorithm and one key id, or without one
constexpr unsigned kUnnamedTriesMax = 8;     // for a token that names no key

struct Parts {
  std::string_view message;  // header and payload as they were signed
  std::string_view header;
  std::string_view payload;
  std::string_view signature;
};

// Three parts and not more: five would be an encrypted token, which is something else.
std::optional<Parts> split(std::string_view token) noexcept {
  const std::size_t first = token.find('.');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = token.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  Parts parts{.message = token.substr(0, second),
              .header = token.substr(0, first),
              .payload = token.substr(first + 1, second - first - 1),
              .signature = token.substr(second + 1)};
  if (parts.header.empty() || parts.payload.empty() || parts.signature.empty()) return std::nullopt;
  return parts;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string bytes(base64_decoded_max(text.size()), '\0');
  const std::optional<std::string_view> view = decode_base64url(text, bytes);
  if (!view) return std::nullopt;
  bytes.resize(view->size());
  return bytes;
}

struct Instant {
  bool valid = false;
  std::optional<WallTime> time;  // absent: the claim is
};

// Seconds since 1970, perhaps with a fraction. Instants beyond our calendar are its end.
Instant read_instant(const FlatJson& claims, std::string_view name) {
  const std::optional<FlatJson::Member> claim = claims.member(name);
  if (!claim) return {.valid = true};
  if (claim->kind != JsonKind::number) return {};
  double seconds = 0;
  const char* const end = claim->value.data() + claim->value.size();
  const auto [stopped, error] = std::from_chars(claim->value.data(), end, seconds);
  if (stopped != end || error != std::errc{}) return {};
  constexpr double kEnd = 8'835'955'200.0;  // kWallTimeEnd
  if (seconds >= kEnd) return {true, kWallTimeEnd};
  if (seconds <= 0) return {true, WallTime{}};
  return {true,
          WallTime{std::chrono::duration_cast<Nanos>(std::chrono::duration<double>{seconds})}};
}

bool contains(const std::vector<std::string>& list, std::string_view text) noexcept {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_text(const std::optional<FlatJson::Member>& member) noexcept {
  return member && member->kind == JsonKind::text;
}

// One text, or a list of texts.
bool has_audience(const FlatJson& claims, const std::vector<std::string>& accepted) noexcept {
  const std::optional<FlatJson::Member> audience = claims.member("aud");
  if (is_text(audience)) return contains(accepted, audience->value);
  if (!audience || audience->kind != JsonKind::array) return false;
  for (std::size_t i = 0;; ++i) {
    const std::optional<FlatJson::Member> one = claims.element("aud", i);
    if (!one) return false;
    if (is_text(one) && contains(accepted, one->value)) return true;
  }
}

bool are_alike(const VerificationKey& one, const VerificationKey& other) noexcept {
  return one.algorithm() == other.algorithm() && one.kid() == other.kid();
}

// Keys of which some would never be tried.
Parsed<void> check_alike(const std::vector<VerificationKey>& keys) {
  for (const VerificationKey& key : keys) {
    const auto alike = std::ranges::count_if(
        keys, [&](const VerificationKey& other) { return are_alike(key, other); });
    if (alike <= kAlikeKeysMax) continue;
    const std::string algorithm{to_string(key.algorithm())};
    if (key.kid().empty()) {
      return mistake(std::to_string(alike) + " keys of " + algorithm +
                         " have no kid: each token would have to be tried with all of them",
                     "keep at most 8, or put them into a jwks_file and give each a kid");
    }
    return mistake(
        std::to_string(alike) + " keys of " + algorithm + " have the kid " + quoted(key.kid()),
        "give each key a kid of its own");
  }
  return {};
}

TokenVerdict refused(TokenFault fault) {
  TokenVerdict verdict;
  verdict.fault = fault;
  return verdict;
}

}  // namespace

std::string_view to_string(TokenFault fault) noexcept {
  switch (fault) {
    case TokenFault::none: return "nothing";
    case TokenFault::too_long: return "the token is too long";
    case TokenFault::malformed: return "the token is malformed";
    case TokenFault::algorithm: return "the token's algorithm is not allowed";
    case TokenFault::unknown_key: return "no key fits the token";
    case TokenFault::unnamed_key: return "the token names no key, and there are too many to try";
    case TokenFault::signature: return "the token's signature is wrong";
    case TokenFault::claims: return "the token's claims cannot be read";
    case TokenFault::missing_claim: return "the token lacks a required claim";
    case TokenFault::expired: return "the token has expired";
    case TokenFault::not_yet_valid: return "the token is not valid yet";
    case TokenFault::issuer: return "the token is from another issuer";
    case TokenFault::audience: return "the token is for another audience";
  }
  return "unknown";
}

Parsed<TokenVerifier> TokenVerifier::create(TokenPolicy policy, std::vector<VerificationKey> keys) {
  if (keys.empty()) return mistake("tokens are to be checked without a key", "give one or more");
  for (const TokenAlgorithm allowed : policy.algorithms) {
    const bool used = std::any_of(keys.begin(), keys.end(), [&](const VerificationKey& key) {
      return key.algorithm() == allowed;
    });
    if (!used) {
      return mistake("tokens of " + std::string{to_string(allowed)} + " are allowed, but no key is",
                     "add such a key or remove the algorithm");
    }
  }
  if (Parsed<void> alike = check_alike(keys); !alike) return tl::unexpected(alike.error());
  constexpr Nanos kClockSkewMax = std::chrono::minutes{10};
  if (policy.clock_skew < Nanos{0} || policy.clock_skew > kClockSkewMax) {
    return mistake("the clock_skew for tokens is out of range", "write at most 10m");
  }
  return TokenVerifier{std::move(policy), std::move(keys)};
}

bool TokenVerifier::allows(TokenAlgorithm algorithm) const noexcept {
  return policy_.algorithms.empty() ||
         std::find(policy_.algorithms.begin(), policy_.algorithms.end(), algorithm) !=
             policy_.algorithms.end();
}

TokenFault TokenVerifier::check_signature(std::string_view header_json, std::string_view message,
                                          std::string_view signature) const {
  FlatJson header;
  if (!header.parse(header_json, kHeaderLimits).ok()) return TokenFault::malformed;
  // Extensions that must be understood: there are none that are.
  if (header.member("crit")) return TokenFault::malformed;
  const std::optional<FlatJson::Member> named = header.member("alg");
  const std::optional<FlatJson::Member> kid = header.member("kid");
  if (!is_text(named) || (kid && !is_text(kid))) return TokenFault::malformed;
  const std::optional<TokenAlgorithm> algorithm = parse_token_algorithm(named->value);
  if (!algorithm || !allows(*algorithm)) return TokenFault::algorithm;
  return kid ? try_named(*algorithm, kid->value, message, signature)
             : try_unnamed(*algorithm, message, signature);
}

// All that fit, of which there are at most twice kAlikeKeysMax.
TokenFault TokenVerifier::try_named(TokenAlgorithm algorithm, std::string_view kid,
                                    std::string_view message, std::string_view signature) const {
  bool tried = false;
  for (const VerificationKey& key : keys_) {
    const bool fits = key.kid().empty() || key.kid() == kid;
    if (key.algorithm() != algorithm || !fits) continue;
    if (key.verify(message, signature)) return TokenFault::none;
    tried = true;
  }
  return tried ? TokenFault::signature : TokenFault::unknown_key;
}

// Keys without a kid first: keys with one are meant for tokens that name it.
TokenFault TokenVerifier::try_unnamed(TokenAlgorithm algorithm, std::string_view message,
                                      std::string_view signature) const {
  unsigned tries = 0;
  for (const bool named : {false, true}) {
    for (const VerificationKey& key : keys_) {
      if (key.algorithm() != algorithm || key.kid().empty() == named) continue;
      if (tries == kUnnamedTriesMax) return TokenFault::unnamed_key;
      if (key.verify(message, signature)) return TokenFault::none;
      ++tries;
    }
  }
  return tries == 0 ? TokenFault::unknown_key : TokenFault::signature;
}

TokenFault TokenVerifier::check_claims(const FlatJson& claims, WallTime now,
                                       WallTime& expires) const {
  const Instant end = read_instant(claims, "exp");
  const Instant begin = read_instant(claims, "nbf");
  if (!end.valid || !begin.valid) return TokenFault::claims;
  for (const std::string& name : policy_.required) {
    const std::optional<FlatJson::Member> claim = claims.member(name);
    if (!claim || claim->kind == JsonKind::null) return TokenFault::missing_claim;
  }
  if (end.time) expires = *end.time + policy_.clock_skew;
  if (now >= expires) return TokenFault::expired;
  if (begin.time && now + policy_.clock_skew < *begin.time) return TokenFault::not_yet_valid;
  if (!policy_.issuers.empty()) {
    const std::optional<FlatJson::Member> issuer = claims.member("iss");
    if (!is_text(issuer) || !contains(policy_.issuers, issuer->value)) return TokenFault::issuer;
  }
  if (!policy_.audiences.empty() && !has_audience(claims, policy_.audiences)) {
    return TokenFault::audience;
  }
  return TokenFault::none;
}

TokenVerdict TokenVerifier::verify(std::string_view token, WallTime now) const {
  if (token.size() > policy_.token_bytes_max) return refused(TokenFault::too_long);
  const std::optional<Parts> parts = split(token);
  if (!parts) return refused(TokenFault::malformed);
  std::array<char, kSignatureBytesMax> signature_bytes{};
  const std::optional<std::string> header = decoded(parts->header);
  const std::optional<std::string_view> signature =
      decode_base64url(parts->signature, signature_bytes);
  if (!header || !signature) return refused(TokenFault::malformed);
  const TokenFault wrong = check_signature(*header, parts->message, *signature);
  if (wrong != TokenFault::none) return refused(wrong);

  const std::optional<std::string> payload = decoded(parts->payload);
  auto claims = std::make_unique<FlatJson>();
  if (!payload || !claims->parse(*payload).ok()) return refused(TokenFault::claims);
  TokenVerdict verdict;
  verdict.fault = check_claims(*claims, now, verdict.expires);
  if (verdict.fault != TokenFault::none) return verdict;
  verdict.user = claims->find(policy_.user_claim);
  verdict.tenant = claims->find(policy_.tenant_claim);
  verdict.tier = claims->find(policy_.tier_claim);
  verdict.claims = std::move(claims);
  return verdict;
}

}  // namespace sluice::identity
