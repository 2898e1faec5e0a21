#include "identity/jwks.h"

#include "base/base64.h"
#include "support/temp_folder.h"
#include "support/token_maker.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>
#include <string_view>

namespace sluice::identity {
namespace {

using testing::IssuerKey;

std::string set_of(const std::string& keys) { return R"({"keys":[)" + keys + "]}"; }

std::string message_of(const std::string& text) {
  const auto keys = parse_jwks(text, "jwks.json");
  return keys ? "fine" : keys.error().text();
}

std::string decoded(std::string_view text) {
  std::array<char, 256> out{};
  return std::string{decode_base64url(text, out).value()};
}

TEST(Jwks, GivesKeysThatCheckSignatures) {
  for (const IssuerKey& issuer : {IssuerKey::hmac(std::string(32, 's')), IssuerKey::rsa(),
                                  IssuerKey::p256(), IssuerKey::ed25519()}) {
    const auto keys = parse_jwks(
        set_of(issuer.jwk(R"(,"kid":"k1","use":"sig","alg":")" + issuer.algorithm() + "\"")),
        "jwks.json");
    ASSERT_TRUE(keys) << keys.error().text();
    ASSERT_EQ(keys->size(), 1U);
    const VerificationKey& key = keys->front();
    EXPECT_EQ(key.kid(), "k1");
    EXPECT_EQ(to_string(key.algorithm()), issuer.algorithm());
    EXPECT_TRUE(key.verify("message", issuer.sign("message"))) << issuer.algorithm();
    EXPECT_FALSE(key.verify("another", issuer.sign("message"))) << issuer.algorithm();
    EXPECT_FALSE(key.verify("message", "")) << issuer.algorithm();
    EXPECT_FALSE(key.verify("message", issuer.sign("message") + "x")) << issuer.algorithm();
  }
}

TEST(Jwks, SkipsKeysForSomethingElse) {
  const IssuerKey issuer = IssuerKey::ed25519();
  const std::string good = issuer.jwk(R"(,"kid":"good")");
  for (const std::string& other :
       {issuer.jwk(R"(,"use":"enc")"), issuer.jwk(R"(,"key_ops":["sign"])"),
        issuer.jwk(R"(,"alg":"ES256")"), std::string{R"({"kty":"EC","crv":"P-521","x":"","y":""})"},
        std::string{R"({"kty":"OKP","crv":"X25519","x":""})"}, std::string{R"({"kty":"new"})"},
        std::string{"{}"}}) {
    const auto keys = parse_jwks(set_of(other + "," + good), "jwks.json");
    ASSERT_TRUE(keys) << keys.error().text();
    ASSERT_EQ(keys->size(), 1U) << other;
    EXPECT_EQ(keys->front().kid(), "good");
  }
  EXPECT_EQ(parse_jwks(set_of(issuer.jwk(R"(,"key_ops":["sign","verify"])")), "x")->size(), 1U);
}

TEST(Jwks, ThatCannotBeUsedIsRefusedWithItsPlace) {
  EXPECT_EQ(message_of("nope").rfind("jwks.json: ", 0), 0U);
  EXPECT_NE(message_of("{}").find("no key"), std::string::npos);
  EXPECT_NE(message_of(set_of("")).find("no key"), std::string::npos);
  const std::string broken = R"({"kty":"OKP","crv":"Ed25519","x":"AA","kid":"b"})";
  EXPECT_NE(message_of(set_of(IssuerKey::ed25519().jwk() + "," + broken)).find("key 2 ('b')"),
            std::string::npos);
  const std::string x(43, 'A');
  for (const std::string& key :
       {std::string{R"({"kty":"RSA","n":"AQAB","e":"AQAB"})"},
        R"({"kty":"EC","crv":"P-256","x":")" + x + R"(","y":")" + x + R"("})",
        std::string{R"({"kty":"EC","crv":"P-256","x":"AA","y":"AA"})"},
        std::string{R"({"kty":"oct","k":"c2hvcnQ"})"}, std::string{R"({"kty":"oct"})"},
        std::string{R"({"kty":"RSA","n":"!","e":"AQAB"})"}}) {
    EXPECT_NE(message_of(set_of(key)).find("key 1"), std::string::npos) << key;
  }
}

// With such an exponent every message would be its own signature.
TEST(Jwks, RefusesAnRsaKeyWithAWeakExponent) {
  const std::string good = IssuerKey::rsa().jwk();
  for (const char* exponent : {"AQ", "Ag", "", "AQABAQABAQABAQAB"}) {
    std::string weak = good;
    weak.replace(weak.find("AQAB\""), 4, exponent);
    EXPECT_NE(message_of(set_of(weak)).find("exponent"), std::string::npos) << exponent;
  }
}

TEST(Jwks, IsReadFromDisk) {
  const testing::TempFolder folder;
  std::ofstream{folder.file("jwks.json")} << set_of(IssuerKey::p256().jwk());
  EXPECT_TRUE(read_jwks(folder.file("jwks.json")));
  EXPECT_NE(read_jwks(folder.file("absent")).error().text().find("absent"), std::string::npos);
}

TEST(VerificationKey, IsNeverReadFromThePrivateHalf) {
  EXPECT_FALSE(VerificationKey::from_pem(IssuerKey::rsa().private_pem()));
  EXPECT_FALSE(VerificationKey::from_secret(IssuerKey::rsa().public_pem()));
  EXPECT_FALSE(VerificationKey::from_pem("nonsense"));
  EXPECT_FALSE(VerificationKey::from_secret(std::string(31, 's')));
}

TEST(VerificationKey, MustBeStrongEnough) {
  const auto weak = VerificationKey::from_pem(IssuerKey::rsa(1024).public_pem());
  ASSERT_FALSE(weak);
  EXPECT_NE(weak.error().text().find("1024 bits"), std::string::npos);
}

// RFC 7515, appendix A.3, and RFC 8037, appendix A.4.
TEST(VerificationKey, AgreesWithPublishedVectors) {
  const auto p256 =
      VerificationKey::from_p256(decoded("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
                                 decoded("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"), "");
  ASSERT_TRUE(p256) << p256.error().text();
  EXPECT_TRUE(p256->verify(
      "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxl"
      "LmNvbS9pc19yb290Ijp0cnVlfQ",
      decoded("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6"
              "NU1Q")));
  const auto ed25519 =
      VerificationKey::from_ed25519(decoded("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"), "");
  ASSERT_TRUE(ed25519) << ed25519.error().text();
  EXPECT_TRUE(ed25519->verify(
      "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
      decoded("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM"
              "0KAg")));
}

}  // namespace
}  // namespace sluice::identity
