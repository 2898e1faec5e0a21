// API keys that were looked up before, so that a client's next request is not hashed slowly again.
//
// Keys are kept as SHA-256 or its keyed form, which is right for a file that may leak and too slow
// for every request. A key that was found is known by 128 bits of SipHash under a secret of this
// process, as tokens are (identity/token_cache.h, which says what that is worth). Unknown keys are
// not remembered. Expiry is not decided here.
//
// One thread: each worker has its own.
#pragma once

#include "base/digest.h"
#include "identity/api_keys.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::identity {

class KeyCache {
 public:
  explicit KeyCache(DigestSecret secret) noexcept : hasher_(KeyDigest{secret}, kKind) {}

  // Null: an unknown key.
  [[nodiscard]] const ApiKey* find(std::string_view key, const ApiKeys& keys) noexcept {
    const Digest digest = hasher_(key);
    Place& place = places_[digest.low % kPlaces];
    if (place.key != nullptr && place.digest == digest) return place.key;
    const ApiKey* const found = keys.find(key);
    if (found != nullptr) place = {.digest = digest, .key = found};
    return found;
  }
  void clear() noexcept { places_.fill({}); }

 private:
  static constexpr std::uint8_t kKind = 1;
  static constexpr std::size_t kPlaces = 2048;
  struct Place {
    Digest digest;
    const ApiKey* key = nullptr;
  };

  KeyHasher hasher_;
  std::array<Place, kPlaces> places_{};
};

}  // namespace sluice::identity
