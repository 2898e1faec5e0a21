#include "identity/identifier.h"

#include "crypto/random_bytes.h"

#include <atomic>
#include <utility>

namespace sluice::identity {
namespace {

// Verdicts of one Identifier mean nothing to the next, which may have other keys.
std::uint64_t next_generation() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

DigestSecret random_secret() {
  DigestSecret secret;
  static_assert(sizeof(secret) == 16);
  crypto::fill_random({reinterpret_cast<unsigned char*>(&secret), sizeof(secret)});
  return secret;
}

constexpr std::string_view kUnknownKey = "the API key is unknown";
constexpr std::string_view kExpiredKey = "the API key has expired";
constexpr std::string_view kTooManyFailures = "too many failed proofs from this address";

// The first failure is the one to tell about.
void fail(Identity& identity, Proof proof, std::string_view why) noexcept {
  if (!identity.why.empty()) return;
  if (identity.proof == Proof::none) identity.proof = proof;
  identity.why = why;
}

CredentialReader::Places places_of(const IdentifierConfig& config) {
  CredentialReader::Places places{.tokens = config.tokens != nullptr, .api_keys = {}};
  if (config.api_keys != nullptr) places.api_keys = config.api_key_sources;
  return places;
}

struct Person {
  std::string_view user;
  std::string_view tenant;
  std::string_view tier;
  const Attributes* claims = nullptr;
  const Attributes* attributes = nullptr;
};

// The first good proof names the person, and says all that is known of it.
void succeed(Identity& identity, const Person& person) noexcept {
  if (identity.proof == Proof::good) return;
  identity.proof = Proof::good;
  identity.user = person.user;
  identity.tenant = person.tenant;
  identity.tier = person.tier;
  identity.claims = person.claims;
  identity.attributes = person.attributes;
}

}  // namespace

IdentifierScratch::IdentifierScratch(const IdentifierScratchLimits& limits)
    : IdentifierScratch(limits, random_secret()) {}

IdentifierScratch::IdentifierScratch(const IdentifierScratchLimits& limits, DigestSecret secret)
    : tokens_(limits.tokens, secret), keys_(secret), failures_(limits.failures, secret) {}

Identifier::Identifier(IdentifierConfig config, ClientAddressFinder finder)
    : config_(std::move(config)),
      finder_(std::move(finder)),
      reader_(places_of(config_)),
      generation_(next_generation()) {}

Parsed<std::shared_ptr<const Identifier>> Identifier::create(IdentifierConfig config) {
  Parsed<ClientAddressFinder> finder = ClientAddressFinder::create(config.address);
  if (!finder) return tl::unexpected(std::move(finder.error()));
  for (const ApiKeySource& source : config.api_key_sources) {
    if (source.name.empty() && source.kind != ApiKeySource::Kind::basic) {
      return mistake("a place for API keys has no name", "name the header, query field or cookie");
    }
  }
  if (config.api_keys != nullptr && config.api_key_sources.empty()) {
    return mistake("there are API keys, but no place where clients put them",
                   "name a header, as in x-api-key");
  }
  return std::shared_ptr<const Identifier>{new Identifier{std::move(config), std::move(*finder)}};
}

// Member by member: to copy a whole identity takes longer.
void Identifier::begin(const RequestView& request, Identity& identity) const noexcept {
  const ClientAddress client = finder_.find(request);
  const GeoAnswer place = config_.geo != nullptr ? config_.geo->find(client.address) : GeoAnswer{};
  identity.address = client.address;
  identity.user = identity.api_key = identity.tenant = identity.tier = identity.why = {};
  identity.country = place.country;
  identity.asn = place.asn;
  identity.through_trusted = client.through_trusted;
  identity.proof = Proof::none;
  identity.claims = identity.attributes = nullptr;
}

void Identifier::prove(const RequestView& request, Now now, IdentifierScratch& scratch,
                       Identity& identity) const noexcept {
  if (scratch.generation_ != generation_) {
    scratch.tokens_.clear();
    scratch.keys_.clear();
    scratch.generation_ = generation_;
  }
  if (!reader_.is_idle()) {
    const Credentials shown = reader_.read(request, scratch.credentials_);
    if (!shown.ambiguous.empty()) return fail(identity, Proof::ambiguous, shown.ambiguous);
    if (!shown.token.empty()) apply_token(shown.token, now, scratch, identity);
    if (!shown.api_key.empty()) apply_api_key(shown.api_key, now, scratch, identity);
  }
  apply_certificate(request, identity);
}

// Null: too many failures. What is known already is told in any case: it costs next to nothing,
// and a good token must not suffer from bad ones behind the same address.
const TokenVerdict* Identifier::verdict_on(std::string_view token, const IpAddress& address,
                                           Now now, IdentifierScratch& scratch) const noexcept {
  const Digest digest = scratch.tokens_.digest(token);
  if (const TokenVerdict* const known = scratch.tokens_.find(digest, now)) return known;
  if (!scratch.failures_.allows(address, now.mono)) return nullptr;
  TokenVerdict verdict = config_.tokens->verify(token, now.wall());
  if (verdict.fault != TokenFault::none) scratch.failures_.charge(address, now.mono);
  return &scratch.tokens_.put(digest, std::move(verdict), now);
}

void Identifier::apply_token(std::string_view token, Now now, IdentifierScratch& scratch,
                             Identity& identity) const noexcept {
  // Before it is even digested: that takes time, too.
  if (token.size() > config_.tokens->policy().token_bytes_max) {
    return fail(identity, Proof::invalid, to_string(TokenFault::too_long));
  }
  const TokenVerdict* const verdict = verdict_on(token, identity.address, now, scratch);
  if (verdict == nullptr) return fail(identity, Proof::limited, kTooManyFailures);
  if (verdict->fault != TokenFault::none) {
    return fail(identity, Proof::invalid, to_string(verdict->fault));
  }
  succeed(identity, {.user = verdict->user,
                     .tenant = verdict->tenant,
                     .tier = verdict->tier,
                     .claims = verdict->claims.get()});
}

void Identifier::apply_api_key(std::string_view presented, Now now, IdentifierScratch& scratch,
                               Identity& identity) const noexcept {
  const ApiKey* const key = scratch.keys_.find(presented, *config_.api_keys);
  if (key == nullptr) return fail(identity, Proof::unknown, kUnknownKey);
  if (key->is_expired(now.wall())) return fail(identity, Proof::invalid, kExpiredKey);
  const ApiKeyRecord& record = key->record();
  identity.api_key = record.name;
  succeed(identity,
          {.user = record.user, .tenant = record.tenant, .tier = record.tier, .attributes = key});
}

void Identifier::apply_certificate(const RequestView& request, Identity& identity) const noexcept {
  if (!config_.certificates || request.tls_subject.empty()) return;
  succeed(identity, {.user = request.tls_subject});
}

}  // namespace sluice::identity
