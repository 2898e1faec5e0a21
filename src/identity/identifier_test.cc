#include "identity/identifier.h"

#include "support/token_maker.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::identity {
namespace {

using testing::IssuerKey;
using namespace std::chrono_literals;

const std::string kSecret(32, 's');
const std::string kGood = R"({"sub":"u1","exp":1800001000,"org":"acme","plan":"gold"})";

Now at(Nanos later = 0s) { return {MonoTime{1h + later}, 1'800'000'000s - 1h}; }

std::shared_ptr<const TokenVerifier> tokens(const std::string& secret = kSecret) {
  const TokenPolicy policy{.tenant_claim = "org", .tier_claim = "plan"};
  return std::make_shared<const TokenVerifier>(
      TokenVerifier::create(policy, {VerificationKey::from_secret(secret).value()}).value());
}

std::shared_ptr<const ApiKeys> keys() {
  std::vector<ApiKeyRecord> records{{.name = "ci",
                                     .hash = hash_api_key("key-1"),
                                     .user = "builder",
                                     .tenant = "t2",
                                     .tier = "paid",
                                     .attributes = {{"team", "infra"}}},
                                    {.name = "old",
                                     .hash = hash_api_key("key-2"),
                                     .user = "builder",
                                     .expires = WallTime{1'800'000'100s}}};
  return std::make_shared<const ApiKeys>(ApiKeys::create(std::move(records)).value());
}

IdentifierConfig everything() {
  return {.address = {.source = AddressSource::x_forwarded_for,
                      .trusted_proxies = {IpRange::parse("10.0.0.0/8").value()}},
          .geo = std::make_shared<const Geo>(
              Geo::open({.country_file = SLUICE_IDENTITY_TESTDATA "/country.mmdb",
                         .asn_file = SLUICE_IDENTITY_TESTDATA "/asn.mmdb"})
                  .value()),
          .tokens = tokens(),
          .api_keys = keys()};
}

std::string token(const std::string& payload = kGood, const std::string& secret = kSecret) {
  return IssuerKey::hmac(secret).token(payload);
}

// A request with its own copies of what it is made of.
class Request {
 public:
  Request& header(std::string name, std::string value) {
    texts_.push_back(
        std::make_unique<std::pair<std::string, std::string>>(std::move(name), std::move(value)));
    headers_.push_back({texts_.back()->first, texts_.back()->second});
    view_.headers = headers_;
    return *this;
  }
  Request& bearer(const std::string& text) { return header("Authorization", "Bearer " + text); }
  Request& key(const std::string& text) { return header("X-API-Key", text); }
  Request& subject(std::string_view text) {
    view_.tls_subject = text;
    return *this;
  }
  Request& peer(std::string_view text) {
    view_.peer = IpAddress::parse(text).value();
    return *this;
  }
  [[nodiscard]] const RequestView& view() const { return view_; }

 private:
  std::vector<std::unique_ptr<std::pair<std::string, std::string>>> texts_;
  std::vector<HeaderView> headers_;
  RequestView view_;
};

class IdentifierTest : public ::testing::Test {
 protected:
  Identity identify(const Request& request, Now now = at()) {
    return identifier_->identify(request.view(), now, scratch_);
  }

  std::shared_ptr<const Identifier> identifier_ = Identifier::create(everything()).value();
  IdentifierScratch scratch_;
};

TEST_F(IdentifierTest, KnowsTheOriginBeforeAnythingIsVerified) {
  Identity somebody = identify(Request{}.peer("192.0.2.9").key("key-1"));
  identifier_->begin(
      Request{}.peer("10.0.0.1").header("X-Forwarded-For", "192.0.2.7").bearer("junk").view(),
      somebody);
  EXPECT_EQ(somebody.address, IpAddress::parse("192.0.2.7"));
  EXPECT_EQ(somebody.country, "DE");
  EXPECT_EQ(somebody.asn, 64500U);
  EXPECT_TRUE(somebody.through_trusted);
  EXPECT_EQ(somebody.proof, Proof::none);
  EXPECT_EQ(somebody.user, "");
  EXPECT_EQ(somebody.api_key, "");
  EXPECT_EQ(somebody.attributes, nullptr);
  EXPECT_TRUE(identifier_->ignores_forwarding(
      Request{}.peer("192.0.2.9").header("X-Forwarded-For", "192.0.2.7").view()));
}

TEST_F(IdentifierTest, FindsNobodyWhereNothingIsPresented) {
  const Identity identity = identify(Request{}.peer("192.0.2.7").header("accept", "*/*"));
  EXPECT_EQ(identity.proof, Proof::none);
  EXPECT_FALSE(identity.authenticated());
  EXPECT_EQ(identity.user, "");
  EXPECT_EQ(identity.why, "");
  EXPECT_EQ(identity.country, "DE");
  EXPECT_EQ(identity.claims, nullptr);
  EXPECT_EQ(identity.attributes, nullptr);
}

TEST_F(IdentifierTest, BelievesAToken) {
  for (int i = 0; i < 2; ++i) {  // the second time out of the cache
    const Identity identity = identify(Request{}.bearer(token()));
    EXPECT_EQ(identity.proof, Proof::good);
    EXPECT_EQ(identity.user, "u1");
    EXPECT_EQ(identity.tenant, "acme");
    EXPECT_EQ(identity.tier, "gold");
    ASSERT_NE(identity.claims, nullptr);
    EXPECT_EQ(identity.claims->find("plan"), "gold");
    EXPECT_EQ(identity.api_key, "");
  }
}

TEST_F(IdentifierTest, BelievesAnApiKey) {
  const Identity identity = identify(Request{}.key("key-1"));
  EXPECT_EQ(identity.proof, Proof::good);
  EXPECT_EQ(identity.api_key, "ci");
  EXPECT_EQ(identity.user, "builder");
  EXPECT_EQ(identity.tenant, "t2");
  EXPECT_EQ(identity.tier, "paid");
  ASSERT_NE(identity.attributes, nullptr);
  EXPECT_EQ(identity.attributes->find("team"), "infra");
  EXPECT_EQ(identity.claims, nullptr);
}

TEST_F(IdentifierTest, BelievesACertificate) {
  const Identity identity = identify(Request{}.subject("CN=client"));
  EXPECT_EQ(identity.proof, Proof::good);
  EXPECT_EQ(identity.user, "CN=client");
}

// Token, then key, then certificate; and user, tenant and tier are of one of them, as are claims
// and attributes, which choose tiers and amounts.
TEST_F(IdentifierTest, TakesThePersonFromTheFirstGoodProof) {
  const Identity all = identify(Request{}.subject("CN=client").key("key-1").bearer(token()));
  EXPECT_EQ(all.user, "u1");
  EXPECT_EQ(all.tier, "gold");
  EXPECT_EQ(all.api_key, "ci");
  EXPECT_NE(all.claims, nullptr);
  EXPECT_EQ(all.attributes, nullptr);
  const Identity key = identify(Request{}.subject("CN=client").key("key-1"));
  EXPECT_EQ(key.user, "builder");
  EXPECT_NE(key.attributes, nullptr);
  const Identity forged =
      identify(Request{}.key("key-1").bearer(token(kGood, std::string(32, 'x'))));
  EXPECT_EQ(forged.user, "builder");
  EXPECT_EQ(forged.claims, nullptr);
  EXPECT_NE(forged.attributes, nullptr);

  // A token without tenant and tier: those of the key must not join its user.
  const Identity bare =
      identify(Request{}.key("key-1").bearer(token(R"({"sub":"u2","exp":1800001000})")));
  EXPECT_EQ(bare.user, "u2");
  EXPECT_EQ(bare.tenant, "");
  EXPECT_EQ(bare.tier, "");
  EXPECT_EQ(bare.api_key, "ci");
  EXPECT_EQ(bare.attributes, nullptr);
}

TEST_F(IdentifierTest, CountsWhatIsNotGoodAsAbsent) {
  const Identity unknown = identify(Request{}.key("nobody's"));
  EXPECT_EQ(unknown.proof, Proof::unknown);
  EXPECT_EQ(unknown.api_key, "");
  EXPECT_EQ(unknown.why, "the API key is unknown");

  for (int i = 0; i < 2; ++i) {
    const Identity forged = identify(Request{}.bearer(token(kGood, std::string(32, 'x'))));
    EXPECT_EQ(forged.proof, Proof::invalid);
    EXPECT_EQ(forged.user, "");
    EXPECT_EQ(forged.tier, "");
    EXPECT_EQ(forged.claims, nullptr);
    EXPECT_EQ(forged.why, "the token's signature is wrong");
  }

  const Identity saved = identify(Request{}.bearer("junk").key("key-1"));
  EXPECT_EQ(saved.proof, Proof::good);
  EXPECT_EQ(saved.user, "builder");
  EXPECT_EQ(saved.why, "the token is malformed");

  const Identity both = identify(Request{}.bearer("junk").key("nobody's"));
  EXPECT_EQ(both.proof, Proof::invalid);
  EXPECT_EQ(both.why, "the token is malformed");
}

TEST_F(IdentifierTest, LetsKeysAndTokensExpire) {
  EXPECT_EQ(identify(Request{}.key("key-2"), at(99s)).proof, Proof::good);
  const Identity key = identify(Request{}.key("key-2"), at(100s));
  EXPECT_EQ(key.proof, Proof::invalid);
  EXPECT_EQ(key.api_key, "");
  EXPECT_EQ(key.why, "the API key has expired");
  const std::string mortal = token(R"({"sub":"u1","exp":1800000010})");
  EXPECT_EQ(identify(Request{}.bearer(mortal), at(39s)).proof, Proof::good);
  EXPECT_EQ(identify(Request{}.bearer(mortal), at(40s)).proof, Proof::invalid)
      << "with its clock_skew";
}

// Which of the two would the server behind believe? Another proof does not help.
TEST_F(IdentifierTest, BelievesNothingBesideAmbiguousCredentials) {
  const Identity twice =
      identify(Request{}.bearer(token()).bearer(token()).key("key-1").subject("CN=client"));
  EXPECT_EQ(twice.proof, Proof::ambiguous);
  EXPECT_FALSE(twice.authenticated());
  EXPECT_EQ(twice.why, "more than one Authorization header");
  EXPECT_EQ(twice.user, "");
  EXPECT_EQ(twice.api_key, "");
  const Identity keys = identify(Request{}.bearer(token()).key("bogus").key("key-1"));
  EXPECT_EQ(keys.proof, Proof::ambiguous);
  EXPECT_EQ(keys.why, "different API keys");
  EXPECT_EQ(identify(Request{}.key("").key("key-1").key("key-1")).user, "builder");
}

TEST_F(IdentifierTest, LooksForTokensBehindBearerOnly) {
  EXPECT_EQ(identify(Request{}.header("authorization", "bearer  " + token() + " ")).proof,
            Proof::good);
  EXPECT_EQ(identify(Request{}.header("authorization", "Basic dTpw")).proof, Proof::none);
  EXPECT_EQ(identify(Request{}.header("authorization", token())).proof, Proof::none);
  EXPECT_EQ(identify(Request{}.header("authorization", "Bearer" + token())).proof, Proof::none);
  EXPECT_EQ(identify(Request{}.bearer(std::string(9000, 'x'))).why, "the token is too long");
}

TEST_F(IdentifierTest, StopsListeningToAnAddressThatOnlyFails) {
  const auto from = [&](const char* address, const std::string& text) {
    return identify(Request{}.peer(address).bearer(text)).proof;
  };
  EXPECT_EQ(from("192.0.2.1", token()), Proof::good);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(from("192.0.2.1", std::to_string(i)), Proof::invalid);
  EXPECT_EQ(from("192.0.2.1", "another"), Proof::limited);
  EXPECT_EQ(from("192.0.2.1", "1"), Proof::invalid) << "known already, costs nothing";
  EXPECT_EQ(from("192.0.2.1", token()), Proof::good) << "likewise";
  EXPECT_EQ(from("192.0.2.1", token(R"({"sub":"u3","exp":1800001000})")), Proof::limited);
  EXPECT_EQ(from("192.0.2.2", "another"), Proof::invalid) << "another address";
  const Identity later = identify(Request{}.peer("192.0.2.1").bearer("yet-another"), at(1s));
  EXPECT_EQ(later.proof, Proof::invalid) << "one more after an interval";
}

// One request that is refused again and again is checked once, and charged once.
TEST_F(IdentifierTest, ChargesARepeatedFailureOnce) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(identify(Request{}.peer("192.0.2.1").bearer("same")).proof, Proof::invalid);
  }
  EXPECT_EQ(identify(Request{}.peer("192.0.2.1").bearer("new")).proof, Proof::invalid);
}

// The same for a token that was good before: its neighbours at the address stay served.
TEST_F(IdentifierTest, ChargesATokenThatExpiredInUseOnce) {
  const std::string mortal = token(R"({"sub":"u1","exp":1800000010})");
  const auto from_one_address = [&](const std::string& text, Nanos later) {
    return identify(Request{}.peer("192.0.2.1").bearer(text), at(later)).proof;
  };
  ASSERT_EQ(from_one_address(mortal, 0s), Proof::good);
  for (int i = 0; i < 60; ++i) ASSERT_EQ(from_one_address(mortal, 40s), Proof::invalid) << i;
  for (const char* user : {"u2", "u3", "u4", "u5"}) {
    const std::string fresh = token(R"({"exp":1800001000,"sub":")" + std::string{user} + "\"}");
    EXPECT_EQ(from_one_address(fresh, 40s), Proof::good) << user;
  }
}

TEST_F(IdentifierTest, ForgetsVerdictsWhenTheKeysChange) {
  ASSERT_EQ(identify(Request{}.bearer(token())).proof, Proof::good);
  const std::string other = token(kGood, std::string(32, 'o'));
  ASSERT_EQ(identify(Request{}.bearer(other)).proof, Proof::invalid);
  IdentifierConfig changed = everything();
  changed.tokens = tokens(std::string(32, 'o'));
  identifier_ = Identifier::create(changed).value();
  EXPECT_EQ(identify(Request{}.bearer(token())).proof, Proof::invalid);
  EXPECT_EQ(identify(Request{}.bearer(other)).proof, Proof::good);
}

TEST(Identifier, WithoutAConfigurationKnowsOnlyThePeerAndTheCertificate) {
  const auto bare = Identifier::create({}).value();
  IdentifierScratch scratch;
  const Request request = std::move(Request{}
                                        .peer("192.0.2.7")
                                        .header("x-forwarded-for", "1.2.3.4")
                                        .bearer(token())
                                        .key("key-1"));
  const Identity identity = bare->identify(request.view(), at(), scratch);
  EXPECT_EQ(identity.address, IpAddress::parse("192.0.2.7"));
  EXPECT_EQ(identity.proof, Proof::none);
  EXPECT_EQ(identity.country, "");
  const auto closed = Identifier::create({.certificates = false}).value();
  EXPECT_EQ(closed->identify(Request{}.subject("CN=x").view(), at(), scratch).proof, Proof::none);
}

TEST(Identifier, RefusesAConfigurationThatCannotWork) {
  EXPECT_FALSE(Identifier::create({.address = {.source = AddressSource::forwarded}}));
  EXPECT_FALSE(Identifier::create({.api_keys = keys(), .api_key_sources = {}}));
  EXPECT_FALSE(Identifier::create(
      {.api_keys = keys(), .api_key_sources = {{ApiKeySource::Kind::query, ""}}}));
}

}  // namespace
}  // namespace sluice::identity
