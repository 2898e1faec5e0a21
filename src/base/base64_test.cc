#include "base/base64.h"

#include "support/property.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {
namespace {

std::optional<std::string> url(std::string_view text) {
  std::array<char, 16> out{};
  const auto bytes = decode_base64url(text, out);
  return bytes ? std::optional{std::string{*bytes}} : std::nullopt;
}

std::optional<std::string> mail(std::string_view text) {
  std::array<char, 16> out{};
  const auto bytes = decode_base64(text, out);
  return bytes ? std::optional{std::string{*bytes}} : std::nullopt;
}

TEST(Base64, DecodesTheExamplesOfRfc4648) {
  EXPECT_EQ(url(""), "");
  EXPECT_EQ(url("Zg"), "f");
  EXPECT_EQ(url("Zm8"), "fo");
  EXPECT_EQ(url("Zm9v"), "foo");
  EXPECT_EQ(url("Zm9vYg"), "foob");
  EXPECT_EQ(url("-_8"), "\xfb\xff");
  EXPECT_EQ(mail("Zg=="), "f");
  EXPECT_EQ(mail("Zm8="), "fo");
  EXPECT_EQ(mail("Zm9v"), "foo");
  EXPECT_EQ(mail("+/8="), "\xfb\xff");
}

// Each of these would be a second text for bytes that have one already.
TEST(Base64, HasOneTextForOneSequenceOfBytes) {
  for (const char* text : {"Zh", "Zm9", "Zg==", "Zg=", "Z", "Zm9vY", "Zm 9v", "Zm9v\n", "+/8",
                           "Zm9=", "====", "Z==="}) {
    EXPECT_EQ(url(text), std::nullopt) << text;
  }
  for (const char* text : {"Zg", "Zh==", "Zm8", "-_8=", "=", "====", "Zg===", "Z===", "=Zg="}) {
    EXPECT_EQ(mail(text), std::nullopt) << text;
  }
}

TEST(Base64, NeverWritesBeyondItsScratch) {
  std::array<char, 3> out{};
  EXPECT_TRUE(decode_base64url("Zm9v", out));
  EXPECT_FALSE(decode_base64url("Zm9vYg", out));
  EXPECT_EQ(encode_base64url("fo", out), "Zm8");
  EXPECT_EQ(encode_base64url("foo", out), "");
}

TEST(Base64, EncodesTheExamplesOfRfc4648) {
  std::array<char, 16> out{};
  EXPECT_EQ(encode_base64url("", out), "");
  EXPECT_EQ(encode_base64url("f", out), "Zg");
  EXPECT_EQ(encode_base64url("fo", out), "Zm8");
  EXPECT_EQ(encode_base64url("foo", out), "Zm9v");
  EXPECT_EQ(encode_base64_unpadded("foobar", out), "Zm9vYmFy");
  EXPECT_EQ(encode_base64url("\xfb\xff", out), "-_8");
  EXPECT_EQ(encode_base64_unpadded("\xfb\xff", out), "+/8");
}

TEST(Base64, DecodesWhatItEncodes) {
  testing::check_property(200, [] {
    const auto bytes = *rc::gen::arbitrary<std::string>();
    std::string text(base64_encoded_size(bytes.size()), '\0');
    std::string again(base64_decoded_max(text.size()), '\0');
    RC_ASSERT(encode_base64url(bytes, text).size() == text.size());
    RC_ASSERT(decode_base64url(text, again).value() == bytes);
    std::string padded{encode_base64_unpadded(bytes, text)};
    padded.resize((padded.size() + 3) / 4 * 4, '=');
    RC_ASSERT(decode_base64(padded, again).value() == bytes);
  });
}

}  // namespace
}  // namespace sluice
