// No token of arbitrary text is believed. Arbitrary claims behind a good signature are read or
// refused; arbitrary sets of keys likewise.

#include "identity/jwt.h"

#include "base/base64.h"
#include "crypto/sha256.h"
#include "fuzz.h"
#include "identity/jwks.h"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace {

using sluice::fuzz::expect;
using sluice::identity::FlatJson;
using sluice::identity::TokenFault;
using sluice::identity::TokenVerdict;
using sluice::identity::TokenVerifier;
using sluice::identity::VerificationKey;

const std::string kSecret(32, 's');
constexpr sluice::WallTime kNow{std::chrono::seconds{1'800'000'000}};

std::string base64url(std::string_view bytes) {
  std::string text(sluice::base64_encoded_size(bytes.size()), '\0');
  (void)sluice::encode_base64url(bytes, text);
  return text;
}

void check_base64(std::string_view text) {
  std::string out(sluice::base64_decoded_max(text.size()), '\0');
  const auto bytes = sluice::decode_base64url(text, out);
  if (bytes) expect(base64url(*bytes) == text, "bytes have one text");
}

void check_json(std::string_view text) {
  FlatJson json;
  if (!json.parse(text).ok()) {
    expect(json.size() == 0, "a broken text leaves nothing");
    return;
  }
  for (std::size_t i = 0; i < json.size(); ++i) {
    const FlatJson::Member member = json.at(i);
    const auto found = json.member(member.name);
    expect(found && found->value.data() == member.value.data(), "every member is found by name");
  }
}

std::string signed_token(std::string_view payload) {
  const std::string message = base64url(R"({"alg":"HS256"})") + "." + base64url(payload);
  const auto signature = sluice::crypto::HmacSecret{kSecret}(message);
  return message + "." +
         base64url({reinterpret_cast<const char*>(signature.data()), signature.size()});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TokenVerifier kVerifier =
      TokenVerifier::create({.audiences = {"api"}}, {VerificationKey::from_secret(kSecret).value()})
          .value();
  const std::string text{data, data + size};
  check_base64(text);
  check_json(text);
  // Only who knows the secret could make one, and it is not in the corpus.
  const TokenVerdict arbitrary = kVerifier.verify(text, kNow);
  expect(arbitrary.fault != TokenFault::none, "no arbitrary token is believed");
  const TokenVerdict claims = kVerifier.verify(signed_token(text), kNow);
  expect((claims.fault == TokenFault::none) == (claims.claims != nullptr),
         "claims are shown of good tokens only");
  if (claims.claims != nullptr) {
    expect(claims.expires > kNow, "a good token has not expired");
    expect(claims.claims->member("aud").has_value(), "a good token is for us");
  }
  const auto keys = sluice::identity::parse_jwks(text, "set");
  expect(keys || !keys.error().message.empty(), "a refused set comes with a reason");
  return 0;
}
