#include "identity/base64.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::identity {
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
}

}  // namespace
}  // namespace sluice::identity
