#include "base/characters.h"
#include <sluice/request.h>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace sluice {
namespace {

// Every pair of bytes, at every place of a text that is compared eight at a time.
TEST(EqualsIgnoringCase, IsRightForEveryPairOfBytes) {
  for (const std::size_t at : {std::size_t{0}, std::size_t{5}, std::size_t{7}, std::size_t{9}}) {
    std::string a = "Content-Type";
    std::string b = "content-type";
    for (unsigned x = 0; x < 256; ++x) {
      for (unsigned y = 0; y < 256; ++y) {
        a[at] = static_cast<char>(x);
        b[at] = static_cast<char>(y);
        ASSERT_EQ(equals_ignoring_case(a, b), lower(a[at]) == lower(b[at]))
            << at << ": " << x << " and " << y;
      }
    }
  }
}

TEST(EqualsIgnoringCase, TellsLengthsApart) {
  EXPECT_TRUE(equals_ignoring_case("", ""));
  EXPECT_FALSE(equals_ignoring_case("accept", "accept-"));
  EXPECT_FALSE(equals_ignoring_case("accept-e", "accept-"));
  EXPECT_TRUE(equals_ignoring_case("ACCEPT-ENCODING", "accept-encoding"));
}

TEST(RequestView, FindsTheFirstHeaderOfAName) {
  const std::array headers{HeaderView{"Host", "a"}, HeaderView{"X-A", "1"}, HeaderView{"x-a", "2"}};
  const RequestView request{.headers = headers};
  EXPECT_EQ(request.header("x-a"), "1");
  EXPECT_EQ(request.header("x-b"), std::nullopt);
}

}  // namespace
}  // namespace sluice
