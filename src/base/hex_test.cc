#include "base/hex.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdint>
#include <string>

namespace sluice {
namespace {

std::string hex(std::uint64_t number) {
  std::array<char, 17> room;
  room.fill('#');
  EXPECT_EQ(put_hex(room.data(), number), room.data() + 16);
  EXPECT_EQ(room.back(), '#');
  return {room.data(), 16};
}

TEST(Hex, WritesAllDigitsInOrder) {
  EXPECT_EQ(hex(0), "0000000000000000");
  EXPECT_EQ(hex(0x0123456789abcdefU), "0123456789abcdef");
  EXPECT_EQ(hex(0xfedcba9876543210U), "fedcba9876543210");
}

RC_GTEST_PROP(Hex, WritesNumbersAsFormatDoes, (std::uint64_t number)) {
  RC_ASSERT(hex(number) == fmt::format("{:016x}", number));
}

}  // namespace
}  // namespace sluice
