#include "crypto/sha256.h"

#include "crypto/openssl_owned.h"
#include "crypto/random_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace sluice::crypto {
namespace {

Sha256Bytes by_openssl(std::string_view text) {
  Sha256Bytes bytes{};
  const OwnedDigestContext context{EVP_MD_CTX_new()};
  EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
  EVP_DigestUpdate(context.get(), text.data(), text.size());
  EVP_DigestFinal_ex(context.get(), bytes.data(), nullptr);
  return bytes;
}

TEST(Sha256, IsThatOfTheTwoTextsInARow) {
  for (std::size_t size : {0U, 1U, 55U, 56U, 63U, 64U, 65U, 200U}) {
    const std::string text(size, 'x');
    EXPECT_EQ(sha256(text), by_openssl(text));
    const std::string_view view = text;
    EXPECT_EQ(sha256(view.substr(0, size / 3), view.substr(size / 3)), sha256(text)) << size;
  }
}

TEST(Sha256, IsComparedInAllItsBytes) {
  const Sha256Bytes one = sha256("one");
  EXPECT_TRUE(equal_in_constant_time(one, sha256("one")));
  for (std::size_t i = 0; i < one.size(); ++i) {
    Sha256Bytes other = one;
    other[i] ^= 1U;
    EXPECT_FALSE(equal_in_constant_time(one, other)) << i;
  }
}

TEST(RandomBytes, FillAllThatIsThere) {
  std::array<unsigned char, 64> first{};
  std::array<unsigned char, 64> second{};
  fill_random(first);
  fill_random(second);
  EXPECT_NE(first, second);
  EXPECT_LT(std::count(first.begin(), first.end(), 0), 16);
}

}  // namespace
}  // namespace sluice::crypto
