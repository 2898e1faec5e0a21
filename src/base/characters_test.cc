#include "base/characters.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(ReadsAs, TakesUnderscoresForHyphensOnBothSides) {
  EXPECT_TRUE(reads_as("X_Api-Key", "x-api-key"));
  EXPECT_TRUE(reads_as("x-api-key", "X_API_KEY"));
  EXPECT_TRUE(reads_as("x_api_key", "x_api_key"));
  EXPECT_TRUE(reads_as("", ""));
}

TEST(ReadsAs, TellsOtherNamesApart) {
  EXPECT_FALSE(reads_as("x-api-key", "x-api-ke"));
  EXPECT_FALSE(reads_as("x-api-ke", "x-api-key"));
  EXPECT_FALSE(reads_as("x.api.key", "x-api-key"));
  EXPECT_FALSE(reads_as("xapikey", "x-api-key"));
}

TEST(DecodePercent, DecodesWholeEscapesOnly) {
  EXPECT_EQ(decode_percent("%2Fx"), '/');
  EXPECT_EQ(decode_percent("%5c"), '\\');
  EXPECT_EQ(decode_percent("%2"), std::nullopt);
  EXPECT_EQ(decode_percent("%g0"), std::nullopt);
  EXPECT_EQ(decode_percent("a%2f"), std::nullopt);
}

}  // namespace
}  // namespace sluice
