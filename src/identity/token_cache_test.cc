#include "identity/token_cache.h"

#include "identity/failure_limit.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace sluice::identity {
namespace {

using namespace std::chrono_literals;

constexpr DigestSecret kSecret{1, 2};
constexpr WallTime kWall{1'800'000'000s};

Now at(Nanos later, Nanos wall_step = 0s) {
  const MonoTime mono{1h + later};
  return {mono, kWall.time_since_epoch() - 1h + wall_step};
}

TokenVerdict good(std::string_view user, WallTime expires = kWallTimeEnd, std::size_t bytes = 0) {
  auto claims = std::make_unique<FlatJson>();
  const std::string json =
      R"({"sub":")" + std::string{user} + R"(","more":")" + std::string(bytes, 'x') + "\"}";
  EXPECT_TRUE(claims->parse(json).ok());
  TokenVerdict verdict;
  verdict.user = claims->find("sub");
  verdict.claims = std::move(claims);
  verdict.expires = expires;
  return verdict;
}

TokenVerdict bad(TokenFault fault) {
  TokenVerdict verdict;
  verdict.fault = fault;
  return verdict;
}

TEST(TokenCache, RemembersBothKindsOfVerdict) {
  TokenCache cache{{}, kSecret};
  EXPECT_EQ(cache.find(cache.digest("a"), at(0s)), nullptr);
  EXPECT_EQ(cache.put(cache.digest("a"), good("u1"), at(0s)).user, "u1");
  EXPECT_EQ(cache.put(cache.digest("b"), bad(TokenFault::signature), at(0s)).fault,
            TokenFault::signature);
  const TokenVerdict* const first = cache.find(cache.digest("a"), at(1s));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->fault, TokenFault::none);
  EXPECT_EQ(first->claims->find("sub"), "u1");
  const TokenVerdict* const second = cache.find(cache.digest("b"), at(1s));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->fault, TokenFault::signature);
  EXPECT_EQ(second->claims, nullptr);
  EXPECT_EQ(cache.find(cache.digest("c"), at(1s)), nullptr);
}

TEST(TokenCache, ForgetsGoodOnesAtTheirEndOrAfterAMaximum) {
  TokenCache cache{{.good_for = 300s}, kSecret};
  cache.put(cache.digest("short"), good("u", kWall + 10s), at(0s));
  cache.put(cache.digest("long"), good("u"), at(0s));
  EXPECT_NE(cache.find(cache.digest("short"), at(10s - 1ns)), nullptr);
  EXPECT_EQ(cache.find(cache.digest("short"), at(10s)), nullptr);
  EXPECT_NE(cache.find(cache.digest("long"), at(300s - 1ns)), nullptr);
  EXPECT_EQ(cache.find(cache.digest("long"), at(300s)), nullptr);
}

// When the clock is set forward, a token must not live on by the time that passed before.
TEST(TokenCache, HeedsAClockThatWasSet) {
  TokenCache cache{{}, kSecret};
  cache.put(cache.digest("a"), good("u", kWall + 60s), at(0s));
  EXPECT_EQ(cache.find(cache.digest("a"), at(1s, 60s)), nullptr);
  EXPECT_NE(cache.find(cache.digest("a"), at(1s, -60s)), nullptr);
}

// A client that goes on sending a token after its end costs one check, not one for each request.
TEST(TokenCache, RemembersThatACachedTokenHasExpired) {
  TokenCache cache{{.good_for = 300s, .bad_for = 10s}, kSecret};
  const Digest token = cache.digest("a");
  cache.put(token, good("u", kWall + 60s), at(0s));
  ASSERT_EQ(cache.find(token, at(60s)), nullptr);
  cache.put(token, bad(TokenFault::expired), at(60s));
  const TokenVerdict* const known = cache.find(token, at(61s));
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->fault, TokenFault::expired);
  EXPECT_EQ(cache.find(token, at(70s)), nullptr) << "bad verdicts are kept shortly";

  cache.put(token, bad(TokenFault::expired), at(400s));
  EXPECT_NE(cache.find(token, at(400s)), nullptr) << "also once the good verdict is too old";
  EXPECT_EQ(cache.claims_bytes(), 0U) << "whose place is free";
}

TEST(TokenCache, ForgetsBadOnesSoon) {
  TokenCache cache{{.bad_for = 10s}, kSecret};
  cache.put(cache.digest("a"), bad(TokenFault::unknown_key), at(0s));
  EXPECT_NE(cache.find(cache.digest("a"), at(10s - 1ns)), nullptr);
  EXPECT_EQ(cache.find(cache.digest("a"), at(10s)), nullptr);
}

TEST(TokenCache, DoesNotRememberThatATokenWasEarly) {
  TokenCache cache{{}, kSecret};
  EXPECT_EQ(cache.put(cache.digest("a"), bad(TokenFault::not_yet_valid), at(0s)).fault,
            TokenFault::not_yet_valid);
  EXPECT_EQ(cache.find(cache.digest("a"), at(0s)), nullptr);
}

TEST(TokenCache, HoldsNoMoreThanItMay) {
  TokenCache cache{{.good_max = 64, .bad_max = 64, .claims_bytes_max = 100'000}, kSecret};
  for (int i = 0; i < 10'000; ++i) {
    const std::string token = std::to_string(i);
    EXPECT_EQ(cache.put(cache.digest(token), good(token, kWallTimeEnd, 5000), at(0s)).user, token);
    ASSERT_LE(cache.claims_bytes(), 100'000U);
    cache.put(cache.digest("b" + token), bad(TokenFault::signature), at(0s));
  }
  EXPECT_NE(cache.find(cache.digest("9999"), at(0s)), nullptr);
  int kept = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (cache.find(cache.digest(std::to_string(i)), at(0s)) != nullptr) ++kept;
  }
  EXPECT_LE(kept, 64);
  EXPECT_GE(kept, 5);
  cache.clear();
  EXPECT_EQ(cache.claims_bytes(), 0U);
  EXPECT_EQ(cache.find(cache.digest("9999"), at(0s)), nullptr);
  EXPECT_EQ(cache.find(cache.digest("b9999"), at(0s)), nullptr);
}

// Who forges tokens must not make honest clients pay for their checks again.
TEST(TokenCache, KeepsGoodOnesThroughAFloodOfBadOnes) {
  TokenCache cache{{.good_max = 16, .bad_max = 16}, kSecret};
  cache.put(cache.digest("honest"), good("u"), at(0s));
  for (int i = 0; i < 1000; ++i) {
    cache.put(cache.digest(std::to_string(i)), bad(TokenFault::signature), at(0s));
  }
  EXPECT_NE(cache.find(cache.digest("honest"), at(0s)), nullptr);
}

TEST(TokenCache, KeepsWhatIsInUse) {
  TokenCache cache{{.good_max = 4}, kSecret};  // one set of places
  cache.put(cache.digest("used"), good("u"), at(0s));
  for (int i = 1; i < 100; ++i) {
    cache.put(cache.digest(std::to_string(i)), good("v"), at(i * 1s));
    EXPECT_NE(cache.find(cache.digest("used"), at(i * 1s)), nullptr) << i;
  }
}

TEST(TokenCache, ReplacesTheVerdictOnTheSameToken) {
  TokenCache cache{{.good_for = 1s}, kSecret};
  cache.put(cache.digest("a"), good("u1"), at(0s));
  const std::size_t bytes = cache.claims_bytes();
  cache.put(cache.digest("a"), good("u2"), at(5s));
  EXPECT_EQ(cache.claims_bytes(), bytes);
  EXPECT_EQ(cache.find(cache.digest("a"), at(5s))->user, "u2");
}

TEST(TokenCache, TellsTokensApartUnderItsSecretOnly) {
  const TokenCache one{{}, kSecret};
  const TokenCache other{{}, {3, 4}};
  EXPECT_EQ(one.digest("token"), one.digest("token"));
  EXPECT_NE(one.digest("token"), other.digest("token"));
  EXPECT_NE(one.digest("token"), one.digest("token2"));
}

IpAddress address(std::string_view text) { return IpAddress::parse(text).value(); }

TEST(FailureLimit, AllowsABurstAndThenOnePerInterval) {
  FailureLimit limit{{.burst = 3, .interval = 1s}, kSecret};
  const IpAddress client = address("1.2.3.4");
  const MonoTime now{1h};
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(limit.allows(client, now)) << i;
    limit.charge(client, now);
  }
  EXPECT_FALSE(limit.allows(client, now));
  EXPECT_FALSE(limit.allows(client, now + 1s - 1ns));
  EXPECT_TRUE(limit.allows(client, now + 1s));
  limit.charge(client, now + 1s);
  EXPECT_FALSE(limit.allows(client, now + 1s));
  EXPECT_TRUE(limit.allows(address("1.2.3.5"), now)) << "another address";
}

TEST(FailureLimit, CountsIpv6ByItsFirst64Bits) {
  FailureLimit limit{{.burst = 1}, kSecret};
  const MonoTime now{1h};
  limit.charge(address("2001:db8:0:1::1"), now);
  EXPECT_FALSE(limit.allows(address("2001:db8:0:1:ffff::2"), now));
  EXPECT_TRUE(limit.allows(address("2001:db8:0:2::1"), now));
}

TEST(FailureLimit, CanBeSwitchedOff) {
  FailureLimit limit{{.burst = 0}, kSecret};
  for (int i = 0; i < 100; ++i) limit.charge(address("1.2.3.4"), MonoTime{1h});
  EXPECT_TRUE(limit.allows(address("1.2.3.4"), MonoTime{1h}));
}

// Those deepest in debt are remembered longest.
TEST(FailureLimit, ForgivesTheLeastWhenItIsFull) {
  FailureLimit limit{{.burst = 5, .addresses_max = 4}, kSecret};
  const MonoTime now{1h};
  for (int i = 0; i < 5; ++i) limit.charge(address("6.6.6.6"), now);
  EXPECT_EQ(limit.forgotten(), 0U);
  for (std::uint32_t i = 0; i < 1000; ++i) limit.charge(IpAddress::v4(i), now);
  EXPECT_FALSE(limit.allows(address("6.6.6.6"), now));
  EXPECT_EQ(limit.forgotten(), 997U) << "all but the three that are remembered";
  for (std::uint32_t i = 0; i < 1000; ++i) limit.charge(IpAddress::v4(i), now + 1h * (i + 1));
  EXPECT_EQ(limit.forgotten(), 997U) << "what has drained makes room by itself";
}

}  // namespace
}  // namespace sluice::identity
