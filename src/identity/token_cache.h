// Cached results of token verification, so that a client's next request does not pay for it again.
//
// Valid results stay until the token expires or for a maximum, whichever comes first; invalid ones
// shortly, so that a repeated token is rejected cheaply. The two have tables of their own: a flood
// of forged tokens cannot evict the tokens of honest clients. Both have a fixed
// number of places, four for each digest, and the claims of all good ones together have a bound.
//
// A token is known by 128 bits of SipHash under a secret that is drawn at random and never leaves
// the process, not by its text. Without the secret a client cannot look for a second token with the
// digest of a good one except by sending it: with a million tries a second for ten years against
// four thousand cached tokens the odds are 2^-68. In return the cache holds no text that a client
// could be impersonated with.
//
// One thread: each worker has its own.
#pragma once

#include "base/digest.h"
#include "identity/jwt.h"
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace sluice::identity {

struct TokenCacheLimits {
  std::size_t good_max = 4096;  // rounded up to a power of two
  std::size_t bad_max = 4096;   // likewise
  std::size_t claims_bytes_max = 8U << 20U;
  Nanos good_for = std::chrono::minutes{5};
  Nanos bad_for = std::chrono::seconds{10};
};

class TokenCache {
 public:
  explicit TokenCache(const TokenCacheLimits& limits, DigestSecret secret);

  [[nodiscard]] Digest digest(std::string_view token) const noexcept;

  // Null: nothing is known. Good until the next call of any function that is not const.
  [[nodiscard]] const TokenVerdict* find(const Digest& token, Now now) noexcept;
  const TokenVerdict& put(const Digest& token, TokenVerdict verdict, Now now);
  void clear() noexcept;

  [[nodiscard]] std::size_t claims_bytes() const noexcept { return claims_bytes_; }

 private:
  static constexpr std::size_t kWays = 4;

  struct Good {
    Digest token;
    MonoTime until;  // of the entry; the token's own end is in the verdict
    MonoTime used;
    TokenVerdict verdict;
  };
  struct Bad {
    Digest token;
    MonoTime until;
    TokenFault fault = TokenFault::none;
  };

  template <class Entry>
  [[nodiscard]] static Entry* places(std::vector<Entry>& table, const Digest& token) noexcept {
    return table.data() + (token.low & (table.size() / kWays - 1)) * kWays;
  }
  void free_place(Good& place) noexcept;
  void make_room(std::size_t bytes) noexcept;

  TokenCacheLimits limits_;
  KeyHasher hasher_;
  std::vector<Good> good_;
  std::vector<Bad> bad_;
  std::size_t claims_bytes_ = 0;
  std::size_t hand_ = 0;  // next to go when claims need room
  TokenVerdict last_bad_;
};

}  // namespace sluice::identity
