#include "identity/token_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace sluice::identity {
namespace {

constexpr std::uint8_t kTokenKind = 1;  // addresses have another one, in FailureLimit

std::size_t rounded_up(std::size_t count, std::size_t least) noexcept {
  return std::bit_ceil(std::max(count, least));
}

std::size_t bytes_of(const TokenVerdict& verdict) noexcept {
  return verdict.claims == nullptr ? 0 : verdict.claims->memory_bytes();
}

}  // namespace

TokenCache::TokenCache(const TokenCacheLimits& limits, DigestSecret secret)
    : limits_(limits),
      hasher_(KeyDigest{secret}, kTokenKind),
      good_(rounded_up(limits.good_max, kWays)),
      bad_(rounded_up(limits.bad_max, kWays)) {}

Digest TokenCache::digest(std::string_view token) const noexcept { return hasher_(token); }

const TokenVerdict* TokenCache::find(const Digest& token, Now now) noexcept {
  Good* const good = places(good_, token);
  for (std::size_t i = 0; i < kWays; ++i) {
    if (good[i].verdict.claims == nullptr || good[i].token != token) continue;
    // The clock of the wall may have been set since: the token's own end counts in any case, and
    // its place is kept in case the clock goes back. Either way the other table may know better:
    // a token that has expired is sent over and over by clients that do not notice.
    if (now.mono >= good[i].until) {
      free_place(good[i]);
      break;
    }
    if (now.wall() >= good[i].verdict.expires) break;
    good[i].used = now.mono;
    return &good[i].verdict;
  }
  const Bad* const bad = places(bad_, token);
  for (std::size_t i = 0; i < kWays; ++i) {
    if (bad[i].fault == TokenFault::none || bad[i].token != token) continue;
    if (now.mono >= bad[i].until) return nullptr;
    last_bad_.fault = bad[i].fault;
    return &last_bad_;
  }
  return nullptr;
}

const TokenVerdict& TokenCache::put(const Digest& token, TokenVerdict verdict, Now now) {
  if (verdict.fault != TokenFault::none) {
    last_bad_.fault = verdict.fault;
    // Its hour may come any moment.
    if (verdict.fault == TokenFault::not_yet_valid) return last_bad_;
    Bad* const bad = places(bad_, token);
    Bad* const place = std::min_element(bad, bad + kWays, [&](const Bad& a, const Bad& b) {
      if ((a.token == token) != (b.token == token)) return a.token == token;
      return a.until < b.until;
    });
    *place = {token, now.mono + limits_.bad_for, verdict.fault};
    return last_bad_;
  }
  Good* const good = places(good_, token);
  // The same token first, then an empty place, then the one unused for longest.
  const auto rank = [&](const Good& one) {
    if (one.verdict.claims == nullptr) return 1;
    return one.token == token ? 0 : 2;
  };
  Good* const place = std::min_element(good, good + kWays, [&](const Good& a, const Good& b) {
    return std::pair{rank(a), a.used} < std::pair{rank(b), b.used};
  });
  free_place(*place);
  const std::size_t bytes = bytes_of(verdict);
  make_room(bytes);
  claims_bytes_ += bytes;
  place->token = token;
  place->until = now.mono + limits_.good_for;
  place->used = now.mono;
  place->verdict = std::move(verdict);
  return place->verdict;
}

void TokenCache::clear() noexcept {
  for (Good& place : good_) free_place(place);
  std::fill(bad_.begin(), bad_.end(), Bad{});
}

void TokenCache::free_place(Good& place) noexcept {
  claims_bytes_ -= bytes_of(place.verdict);
  place.verdict = {};
}

// Those in the way of the hand go, used or not: claims so large that this matters are rare. One
// round at most, since then nothing is left.
void TokenCache::make_room(std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < good_.size(); ++i) {
    if (claims_bytes_ + bytes <= limits_.claims_bytes_max) return;
    free_place(good_[hand_]);
    hand_ = (hand_ + 1) & (good_.size() - 1);
  }
}

}  // namespace sluice::identity
