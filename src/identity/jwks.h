// Sets of keys as issuers publish them (RFC 7517).
//
// Keys for other uses and of unknown sorts are skipped, as the standard wants: an issuer may add
// some any time. A key that claims to be of a known sort and is not makes the whole set a mistake,
// and so does a set without a usable key.
#pragma once

#include "identity/verification_key.h"
#include <sluice/diagnostic.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::identity {

// `place` begins every message, as a file's name or an address.
[[nodiscard]] Parsed<std::vector<VerificationKey>> parse_jwks(std::string_view text,
                                                              std::string_view place);
[[nodiscard]] Parsed<std::vector<VerificationKey>> read_jwks(const std::string& path);

}  // namespace sluice::identity
