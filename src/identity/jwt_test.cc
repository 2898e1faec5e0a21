#include "identity/jwt.h"

#include "support/token_maker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::identity {
namespace {

using testing::base64url;
using testing::IssuerKey;
using namespace std::chrono_literals;

constexpr WallTime kNow{1'800'000'000s};
const std::string kSecret(32, 's');
const std::string kGood = R"({"sub":"u1","exp":1800000100})";

VerificationKey secret_key(std::string kid = {}) {
  return VerificationKey::from_secret(kSecret, std::move(kid)).value();
}

TokenVerifier verifier(TokenPolicy policy = {}) {
  return TokenVerifier::create(std::move(policy), {secret_key()}).value();
}

TokenFault fault_of(const std::string& payload, TokenPolicy policy = {}) {
  const std::string token = IssuerKey::hmac(kSecret).token(payload);
  return verifier(std::move(policy)).verify(token, kNow).fault;
}

const std::vector<IssuerKey>& issuers() {
  static const std::vector<IssuerKey> kIssuers{IssuerKey::hmac(kSecret), IssuerKey::rsa(),
                                               IssuerKey::p256(), IssuerKey::ed25519()};
  return kIssuers;
}

VerificationKey public_key(const IssuerKey& issuer, std::string kid = {}) {
  if (issuer.algorithm() == "HS256") return secret_key(std::move(kid));
  return VerificationKey::from_pem(issuer.public_pem(), std::move(kid)).value();
}

TEST(Jwt, IsGoodWhenSignedByAnyOfTheAlgorithms) {
  for (const IssuerKey& issuer : issuers()) {
    const TokenVerifier one = TokenVerifier::create({}, {public_key(issuer)}).value();
    const TokenVerdict verdict = one.verify(issuer.token(kGood), kNow);
    EXPECT_EQ(verdict.fault, TokenFault::none) << issuer.algorithm();
    EXPECT_EQ(verdict.user, "u1");
    EXPECT_EQ(verdict.expires, WallTime{1'800'000'130s});
  }
}

TEST(Jwt, IsRefusedWhenAnyPartOfItIsChanged) {
  for (const IssuerKey& issuer : issuers()) {
    const TokenVerifier one = TokenVerifier::create({}, {public_key(issuer)}).value();
    const std::string token = issuer.token(kGood);
    const std::string other = issuer.token(R"({"sub":"u2","exp":1800000100})");
    const std::size_t dot = token.rfind('.');
    EXPECT_EQ(one.verify(other.substr(0, other.rfind('.')) + token.substr(dot), kNow).fault,
              TokenFault::signature)
        << issuer.algorithm();
    for (std::size_t at = 0; at < token.size(); at += 7) {
      std::string changed = token;
      changed[at] = changed[at] == 'A' ? 'B' : 'A';
      EXPECT_NE(one.verify(changed, kNow).fault, TokenFault::none)
          << issuer.algorithm() << " at " << at;
    }
    for (std::size_t size = 0; size < token.size(); size += 5) {
      EXPECT_NE(one.verify(token.substr(0, size), kNow).fault, TokenFault::none);
    }
  }
}

TEST(Jwt, OfAnotherKeyIsRefused) {
  const TokenVerifier one = TokenVerifier::create({}, {public_key(IssuerKey::p256())}).value();
  EXPECT_EQ(one.verify(IssuerKey::p256().token(kGood), kNow).fault, TokenFault::signature);
}

// The two classic attacks: no signature at all, and a public key taken for a shared secret.
TEST(Jwt, NeverChoosesItsOwnAlgorithm) {
  const IssuerKey& rsa = issuers()[1];
  const TokenVerifier one = TokenVerifier::create({}, {public_key(rsa)}).value();
  for (const char* name : {"none", "None", "NONE", "", "HS512", "rs256", "RS512", "ES256K"}) {
    const std::string header = std::string{R"({"alg":")"} + name + "\"}";
    EXPECT_EQ(one.verify(rsa.token(header, kGood), kNow).fault, TokenFault::algorithm) << name;
    EXPECT_NE(one.verify(base64url(header) + "." + base64url(kGood) + ".", kNow).fault,
              TokenFault::none);
  }
  const IssuerKey confused = IssuerKey::hmac(rsa.public_pem());
  EXPECT_EQ(one.verify(confused.token(kGood), kNow).fault, TokenFault::unknown_key);
}

TEST(Jwt, OfAnAlgorithmThatIsNotAllowedIsRefused) {
  std::vector<VerificationKey> keys{secret_key(), public_key(issuers()[2])};
  const TokenVerifier one =
      TokenVerifier::create({.algorithms = {TokenAlgorithm::es256}}, keys).value();
  EXPECT_EQ(one.verify(issuers()[0].token(kGood), kNow).fault, TokenFault::algorithm);
  EXPECT_EQ(one.verify(issuers()[2].token(kGood), kNow).fault, TokenFault::none);
}

TEST(Jwt, IsCheckedWithTheKeyThatItNames) {
  const IssuerKey first = IssuerKey::hmac(std::string(32, '1'));
  const IssuerKey second = IssuerKey::hmac(std::string(32, '2'));
  const TokenVerifier both =
      TokenVerifier::create({}, {VerificationKey::from_secret(std::string(32, '1'), "k1").value(),
                                 VerificationKey::from_secret(std::string(32, '2'), "k2").value()})
          .value();
  const auto fault = [&](const IssuerKey& issuer, const std::string& header) {
    return both.verify(issuer.token(header, kGood), kNow).fault;
  };
  EXPECT_EQ(fault(first, R"({"alg":"HS256","kid":"k1"})"), TokenFault::none);
  EXPECT_EQ(fault(second, R"({"alg":"HS256","kid":"k2"})"), TokenFault::none);
  EXPECT_EQ(fault(second, R"({"alg":"HS256","kid":"k1"})"), TokenFault::signature);
  EXPECT_EQ(fault(first, R"({"alg":"HS256","kid":"k3"})"), TokenFault::unknown_key);
  EXPECT_EQ(fault(second, R"({"alg":"HS256"})"), TokenFault::none) << "without a name: any of them";
  EXPECT_EQ(fault(first, R"({"alg":"HS256","kid":1})"), TokenFault::malformed);
}

std::string secret_of(int number) { return std::string(32, static_cast<char>('a' + number)); }

std::vector<VerificationKey> numbered_keys(int count, bool with_kid) {
  std::vector<VerificationKey> keys;
  for (int i = 0; i < count; ++i) {
    const std::string kid = with_kid ? "k" + std::to_string(i) : "";
    keys.push_back(VerificationKey::from_secret(secret_of(i), kid).value());
  }
  return keys;
}

// A token that names no key is tried with so many, and says so when there were more.
TEST(Jwt, WithoutAKeyIdTriesOnlySoManyKeys) {
  const TokenVerifier many = TokenVerifier::create({}, numbered_keys(20, true)).value();
  const auto fault = [&](int signer, const std::string& header) {
    return many.verify(IssuerKey::hmac(secret_of(signer)).token(header, kGood), kNow).fault;
  };
  EXPECT_EQ(fault(7, R"({"alg":"HS256"})"), TokenFault::none);
  EXPECT_EQ(fault(8, R"({"alg":"HS256"})"), TokenFault::unnamed_key);
  EXPECT_EQ(fault(19, R"({"alg":"HS256","kid":"k19"})"), TokenFault::none);
  EXPECT_EQ(fault(18, R"({"alg":"HS256","kid":"k19"})"), TokenFault::signature);
}

// Keys that could never be tried are refused when they are loaded.
TEST(Jwt, IsCheckedWithEveryKeyThatIsLoaded) {
  const TokenVerifier eight = TokenVerifier::create({}, numbered_keys(8, false)).value();
  EXPECT_EQ(eight.verify(IssuerKey::hmac(secret_of(7)).token(kGood), kNow).fault, TokenFault::none);
  EXPECT_EQ(eight.verify(IssuerKey::hmac(secret_of(8)).token(kGood), kNow).fault,
            TokenFault::signature);
  const auto nine = TokenVerifier::create({}, numbered_keys(9, false));
  ASSERT_FALSE(nine);
  EXPECT_NE(nine.error().message.find("9 keys of HS256 have no kid"), std::string::npos);
  EXPECT_NE(nine.error().remedy.find("give each a kid"), std::string::npos);
  const std::vector<VerificationKey> twins(9, secret_key("twin"));
  EXPECT_FALSE(TokenVerifier::create({}, twins));

  // Neither do keys without a name stand in the way of the one that is named, nor the reverse.
  std::vector<VerificationKey> mixed = numbered_keys(8, false);
  mixed.push_back(VerificationKey::from_secret(secret_of(8), "ninth").value());
  const TokenVerifier both = TokenVerifier::create({}, mixed).value();
  const std::string named =
      IssuerKey::hmac(secret_of(8)).token(R"({"alg":"HS256","kid":"ninth"})", kGood);
  EXPECT_EQ(both.verify(named, kNow).fault, TokenFault::none);
  std::rotate(mixed.begin(), mixed.end() - 1, mixed.end());
  const TokenVerifier turned = TokenVerifier::create({}, mixed).value();
  EXPECT_EQ(turned.verify(IssuerKey::hmac(secret_of(7)).token(kGood), kNow).fault,
            TokenFault::none);
}

TEST(Jwt, IsGoodBetweenItsInstantsAndALeeway) {
  EXPECT_EQ(fault_of(R"({"exp":1799999971})"), TokenFault::none);
  EXPECT_EQ(fault_of(R"({"exp":1799999970})"), TokenFault::expired);
  EXPECT_EQ(fault_of(R"({"exp":1799999970.5})"), TokenFault::none);
  EXPECT_EQ(fault_of(R"({"exp":1799999999})", {.clock_skew = 0s}), TokenFault::expired);
  EXPECT_EQ(fault_of(R"({"exp":-1})"), TokenFault::expired);
  EXPECT_EQ(fault_of(R"({"exp":1e300})"), TokenFault::none);
  EXPECT_EQ(fault_of(R"({"exp":1800000100,"nbf":1800000030})"), TokenFault::none);
  EXPECT_EQ(fault_of(R"({"exp":1800000100,"nbf":1800000031})"), TokenFault::not_yet_valid);
  for (const char* payload : {R"({"exp":"1800000100"})", R"({"exp":true})", R"({"exp":[1]})",
                              R"({"exp":1800000100,"nbf":"x"})", R"({"exp":1e999})"}) {
    EXPECT_EQ(fault_of(payload), TokenFault::claims) << payload;
  }
}

TEST(Jwt, MustCarryWhatIsRequired) {
  EXPECT_EQ(fault_of(R"({"sub":"u1"})"), TokenFault::missing_claim);
  EXPECT_EQ(fault_of(R"({"sub":"u1"})", {.required = {}}), TokenFault::none);
  EXPECT_EQ(fault_of(kGood, {.required = {"org.id"}}), TokenFault::missing_claim);
  EXPECT_EQ(fault_of(R"({"org":{"id":1}})", {.required = {"org.id"}}), TokenFault::none);
  EXPECT_EQ(fault_of(R"({"org":null})", {.required = {"org"}}), TokenFault::missing_claim);
}

TEST(Jwt, MustComeFromTheIssuerAndBeForUs) {
  const TokenPolicy policy{
      .issuers = {"https://a", "https://b"}, .audiences = {"api", "api2"}, .required = {}};
  EXPECT_EQ(fault_of(R"({"iss":"https://b","aud":"api"})", policy), TokenFault::none);
  EXPECT_EQ(fault_of(R"({"iss":"https://a","aud":["x","api2"]})", policy), TokenFault::none);
  for (const char* payload : {R"({"aud":"api"})", R"({"iss":"https://c","aud":"api"})",
                              R"({"iss":["https://a"],"aud":"api"})", R"({"iss":1,"aud":"api"})"}) {
    EXPECT_EQ(fault_of(payload, policy), TokenFault::issuer) << payload;
  }
  for (const char* payload :
       {R"({"iss":"https://a"})", R"({"iss":"https://a","aud":"API"})",
        R"({"iss":"https://a","aud":[]})", R"({"iss":"https://a","aud":[["api"]]})",
        R"({"iss":"https://a","aud":{"0":"api"}})", R"({"iss":"https://a","aud":"api "})"}) {
    EXPECT_EQ(fault_of(payload, policy), TokenFault::audience) << payload;
  }
}

TEST(Jwt, ShowsItsClaimsByName) {
  const TokenPolicy policy{.required = {},
                           .user_claim = "uid",
                           .tenant_claim = "org.id",
                           .tier_claim = "https://example.com/tier"};
  const TokenVerdict verdict = verifier(policy).verify(
      IssuerKey::hmac(kSecret).token(
          R"({"uid":7,"org":{"id":"acme"},"https://example.com/tier":"gold","scope":"a b"})"),
      kNow);
  ASSERT_EQ(verdict.fault, TokenFault::none);
  EXPECT_EQ(verdict.user, "7");
  EXPECT_EQ(verdict.tenant, "acme");
  EXPECT_EQ(verdict.tier, "gold");
  EXPECT_EQ(verdict.claims->find("scope"), "a b");
  EXPECT_EQ(verdict.expires, kWallTimeEnd);
}

TEST(Jwt, ThatIsRefusedShowsNothing) {
  for (const char* payload :
       {R"({"sub":"u1","exp":1})", R"({"sub":"u1"})", R"({"sub":"a","sub":"b"})"}) {
    const TokenVerdict verdict = verifier().verify(IssuerKey::hmac(kSecret).token(payload), kNow);
    EXPECT_NE(verdict.fault, TokenFault::none);
    EXPECT_EQ(verdict.claims, nullptr);
    EXPECT_EQ(verdict.user, "");
  }
}

TEST(Jwt, MustBeStrictJson) {
  for (const char* payload : {"", "x", "[]", "\"a\"", R"({"exp":1800000100,"exp":1800000101})",
                              R"({"exp":1800000100,})", "{\"exp\":1800000100}x"}) {
    EXPECT_NE(fault_of(payload), TokenFault::none) << payload;
  }
  const IssuerKey issuer = IssuerKey::hmac(kSecret);
  for (const char* header :
       {R"({"alg":"HS256","alg":"HS256"})", R"({"alg":"HS256","crit":["exp"]})", R"({"alg":1})",
        R"({})", R"({"alg":"HS256","crit":[],"b64":false})", "[]", "x"}) {
    EXPECT_EQ(verifier().verify(issuer.token(header, kGood), kNow).fault, TokenFault::malformed)
        << header;
  }
}

TEST(Jwt, HasThreePartsOfStrictBase64) {
  const std::string token = IssuerKey::hmac(kSecret).token(kGood);
  ASSERT_EQ(verifier().verify(token, kNow).fault, TokenFault::none);
  for (const std::string& text :
       {std::string{}, std::string{"."}, std::string{".."}, token + ".", token + ".a.b",
        token + "=", " " + token, token + "\n", token.substr(0, token.rfind('.')), "a" + token}) {
    EXPECT_NE(verifier().verify(text, kNow).fault, TokenFault::none) << text;
  }
}

TEST(Jwt, ThatIsTooLongIsNotLookedAt) {
  const TokenPolicy policy{.token_bytes_max = 100};
  EXPECT_EQ(verifier(policy).verify(std::string(101, 'a'), kNow).fault, TokenFault::too_long);
  EXPECT_EQ(verifier(policy).verify(std::string(100, 'a'), kNow).fault, TokenFault::malformed);
}

// RFC 7515, appendix A.1: made by others, checked by us.
TEST(Jwt, AgreesWithPublishedVectors) {
  const std::string payload =
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0"
      "cnVlfQ";
  const std::string shared =
      "\x03\x23\x35\x4b\x2b\x0f\xa5\xbc\x83\x7e\x06\x65\x77\x7b\xa6\x8f\x5a\xb3\x28\xe6\xf0\x54"
      "\xc9\x28\xa9\x0f\x84\xb2\xd2\x50\x2e\xbf\xd3\xfb\x5a\x92\xd2\x06\x47\xef\x96\x8a\xb4\xc3"
      "\x77\x62\x3d\x22\x3d\x2e\x21\x72\x05\x2e\x4f\x08\xc0\xcd\x9a\xf5\x67\xd0\x80\xa3";
  const WallTime then{1'300'819'000s};
  const TokenVerifier hmac =
      TokenVerifier::create({}, {VerificationKey::from_secret(shared).value()}).value();
  const std::string token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." + payload +
                            ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
  const TokenVerdict verdict = hmac.verify(token, then);
  ASSERT_EQ(verdict.fault, TokenFault::none);
  EXPECT_EQ(verdict.claims->find("iss"), "joe");
  EXPECT_EQ(verdict.claims->find("http://example.com/is_root"), "true");
  EXPECT_EQ(hmac.verify(token, kNow).fault, TokenFault::expired);
}

TEST(TokenPolicy, IsRefusedWithARemedy) {
  EXPECT_FALSE(TokenVerifier::create({}, {}));
  EXPECT_FALSE(TokenVerifier::create({.algorithms = {TokenAlgorithm::rs256}}, {secret_key()}));
  EXPECT_FALSE(TokenVerifier::create({.clock_skew = 11min}, {secret_key()}));
  EXPECT_FALSE(TokenVerifier::create({.clock_skew = -1s}, {secret_key()}));
}

}  // namespace
}  // namespace sluice::identity
