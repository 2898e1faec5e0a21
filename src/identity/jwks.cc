#include "identity/jwks.h"

#include "base/base64.h"
#include "base/read_file.h"
#include "base/text.h"
#include "identity/flat_json.h"

#include <optional>

namespace sluice::identity {
namespace {

constexpr JsonLimits kLimits{.bytes_max = 1U << 20U, .members_max = 4096, .depth_max = 6};
constexpr std::size_t kKeysMax = 100;

// One key of the set.
class Jwk {
 public:
  Jwk(const FlatJson& set, std::size_t index)
      : set_(set), prefix_("keys." + std::to_string(index) + ".") {}

  [[nodiscard]] std::string_view text(std::string_view member) const {
    const auto found = set_.member(prefix_ + std::string{member});
    return found && found->kind == JsonKind::text ? found->value : std::string_view{};
  }

  // The bytes of a member; empty for what is absent or not base64url.
  [[nodiscard]] std::string bytes(std::string_view member) const {
    const std::string_view encoded = text(member);
    std::string decoded(base64_decoded_max(encoded.size()), '\0');
    const std::optional<std::string_view> view = decode_base64url(encoded, decoded);
    decoded.resize(view ? view->size() : 0);
    return decoded;
  }

  // Usable for checking signatures, as far as it says anything about it.
  [[nodiscard]] bool is_for_signatures() const {
    const std::string_view use = text("use");
    if (!use.empty() && use != "sig") return false;
    if (!set_.member(prefix_ + "key_ops")) return true;
    for (std::size_t i = 0;; ++i) {
      const auto operation = set_.element(prefix_ + "key_ops", i);
      if (!operation) return false;
      if (operation->value == "verify") return true;
    }
  }

 private:
  const FlatJson& set_;
  std::string prefix_;
};

std::optional<TokenAlgorithm> algorithm_of(const Jwk& jwk) {
  const std::string_view type = jwk.text("kty");
  const std::string_view curve = jwk.text("crv");
  if (type == "oct") return TokenAlgorithm::hs256;
  if (type == "RSA") return TokenAlgorithm::rs256;
  if (type == "EC" && curve == "P-256") return TokenAlgorithm::es256;
  if (type == "OKP" && curve == "Ed25519") return TokenAlgorithm::eddsa;
  return std::nullopt;
}

Parsed<VerificationKey> key_of(const Jwk& jwk, TokenAlgorithm algorithm) {
  std::string kid{jwk.text("kid")};
  switch (algorithm) {
    case TokenAlgorithm::hs256: return VerificationKey::from_secret(jwk.bytes("k"), std::move(kid));
    case TokenAlgorithm::rs256:
      return VerificationKey::from_rsa(jwk.bytes("n"), jwk.bytes("e"), std::move(kid));
    case TokenAlgorithm::es256:
      return VerificationKey::from_p256(jwk.bytes("x"), jwk.bytes("y"), std::move(kid));
    case TokenAlgorithm::eddsa:
      return VerificationKey::from_ed25519(jwk.bytes("x"), std::move(kid));
  }
  return mistake("unreachable");
}

std::string name_of(const Jwk& jwk, std::size_t index) {
  const std::string_view kid = jwk.text("kid");
  const std::string number = "key " + std::to_string(index + 1);
  return kid.empty() ? number : number + " (" + quoted(kid) + ")";
}

}  // namespace

Parsed<std::vector<VerificationKey>> parse_jwks(std::string_view text, std::string_view place) {
  const std::string where = std::string{place} + ": ";
  FlatJson set;
  const JsonFault fault = set.parse(text, kLimits);
  if (!fault.ok()) {
    return mistake(where + fault.what + " at byte " + std::to_string(fault.at),
                   "a set of keys in JSON is needed");
  }
  std::vector<VerificationKey> keys;
  for (std::size_t i = 0; set.element("keys", i); ++i) {
    if (i == kKeysMax) return mistake(where + "more than 100 keys", "remove old ones");
    const Jwk jwk{set, i};
    const std::optional<TokenAlgorithm> algorithm = algorithm_of(jwk);
    const std::string_view named = jwk.text("alg");
    if (!algorithm || !jwk.is_for_signatures()) continue;
    if (!named.empty() && named != to_string(*algorithm)) continue;
    Parsed<VerificationKey> key = key_of(jwk, *algorithm);
    if (!key) {
      return mistake(where + name_of(jwk, i) + ": " + key.error().message, key.error().remedy);
    }
    keys.push_back(std::move(*key));
  }
  if (keys.empty()) {
    return mistake(where + "no key of RS256, ES256, EdDSA or HS256",
                   R"(write {"keys": [{"kty": ...}]})");
  }
  return keys;
}

Parsed<std::vector<VerificationKey>> read_jwks(const std::string& path) {
  Parsed<std::string> content = read_trusted_file(path, kLimits.bytes_max);
  if (!content) return tl::unexpected(std::move(content.error()));
  return parse_jwks(*content, path);
}

}  // namespace sluice::identity
