// A file of API keys in JSON: {"keys": [{"name": "ci", "hash": "sha256:...", "user": "acme",
// "tenant": "t", "tier": "paid", "attributes": {"plan": {"seats": 5}}, "expires": RFC 3339}]}.
//
// Only name and hash are required; what is unknown is refused, with the nearest known word.
#pragma once

#include "identity/api_keys.h"
#include <sluice/diagnostic.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::identity {

// `place` begins every message, as the file's name.
[[nodiscard]] Parsed<std::vector<ApiKeyRecord>> parse_api_keys(std::string_view json,
                                                               std::string_view place);
[[nodiscard]] Parsed<std::vector<ApiKeyRecord>> read_api_keys(const std::string& path);

}  // namespace sluice::identity
