// Who is asking: everything that this folder finds out, put together.
//
// In two steps, because some rules are evaluated before anything is verified. The first one, the
// origin, is cheap: the client's address and where that is. The second one looks at what the
// client presents, in this order:
//
//   1. a token (Authorization: Bearer)
//   2. an API key
//   3. a certificate, verified by the TLS listener
//
// The first valid credential gives user, tenant and tier, all three: they are never combined from
// two, so that no client gets the tier of one with the user of another. Claims and attributes are
// of that credential, too; of a valid key beside it only the name is shown. An invalid credential
// counts as absent; `proof` is the result of the first one, unless a later one is valid. Within one
// kind there is one credential: of two (identity/credentials.h) none is verified, and `proof` is
// ambiguous.
//
// An Identifier is immutable and shared by workers. What changes lives in an IdentifierScratch, one
// per worker. A steady client costs no allocation: its token is in the verdict cache.
#pragma once

#include "identity/api_keys.h"
#include "identity/client_address.h"
#include "identity/credentials.h"
#include "identity/failure_limit.h"
#include "identity/geo.h"
#include "identity/identity.h"
#include "identity/jwt.h"
#include "identity/key_cache.h"
#include "identity/token_cache.h"
#include <sluice/diagnostic.h>
#include <sluice/request.h>
#include <sluice/time.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace sluice::identity {

struct IdentifierConfig {
  ClientAddressConfig address;
  std::shared_ptr<const Geo> geo;               // null: countries and networks stay unknown
  std::shared_ptr<const TokenVerifier> tokens;  // null: tokens are not looked at
  std::shared_ptr<const ApiKeys> api_keys;      // null: keys are not looked at
  std::vector<ApiKeySource> api_key_sources{ApiKeySource{}};
  bool certificates = true;  // the subject of a verified one is the user
};

struct IdentifierScratchLimits {
  TokenCacheLimits tokens;
  FailureLimits failures;
};

// One thread.
class IdentifierScratch {
 public:
  // Draws the secret of its digests at random.
  explicit IdentifierScratch(const IdentifierScratchLimits& limits = {});

  // Addresses whose failed tokens were forgotten early, for want of room.
  [[nodiscard]] std::uint64_t failures_forgotten() const noexcept { return failures_.forgotten(); }

 private:
  friend class Identifier;
  IdentifierScratch(const IdentifierScratchLimits& limits, DigestSecret secret);

  std::uint64_t generation_ = 0;  // of the Identifier whose verdicts are in the cache
  TokenCache tokens_;
  KeyCache keys_;
  FailureLimit failures_;
  std::array<char, kCredentialScratchBytes> credentials_{};
};

class Identifier {
 public:
  [[nodiscard]] static Parsed<std::shared_ptr<const Identifier>> create(IdentifierConfig config);

  // Worth one warning: see ClientAddressFinder.
  [[nodiscard]] bool ignores_forwarding(const RequestView& request) const noexcept {
    return finder_.ignores_forwarding(request);
  }

  // What can be known without a proof: the address, and where it is. All else is empty.
  void begin(const RequestView& request, Identity& identity) const noexcept;
  // Adds what the request proves. Views are good until the scratch is used again.
  void prove(const RequestView& request, Now now, IdentifierScratch& scratch,
             Identity& identity) const noexcept;

  [[nodiscard]] Identity identify(const RequestView& request, Now now,
                                  IdentifierScratch& scratch) const noexcept {
    Identity identity;
    begin(request, identity);
    prove(request, now, scratch, identity);
    return identity;
  }

 private:
  Identifier(IdentifierConfig config, ClientAddressFinder finder);

  void apply_token(std::string_view token, Now now, IdentifierScratch& scratch,
                   Identity& identity) const noexcept;
  void apply_api_key(std::string_view presented, Now now, IdentifierScratch& scratch,
                     Identity& identity) const noexcept;
  void apply_certificate(const RequestView& request, Identity& identity) const noexcept;
  [[nodiscard]] const TokenVerdict* verdict_on(std::string_view token, const IpAddress& address,
                                               Now now, IdentifierScratch& scratch) const noexcept;

  IdentifierConfig config_;
  ClientAddressFinder finder_;
  CredentialReader reader_;
  std::uint64_t generation_;
};

}  // namespace sluice::identity
