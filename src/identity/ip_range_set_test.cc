#include "identity/ip_range_set.h"

#include "support/property.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace sluice::identity {
namespace {

IpAddress address(std::string_view text) { return IpAddress::parse(text).value(); }
IpRange range(std::string_view text) { return IpRange::parse(text).value(); }

TEST(IpRangeSet, ContainsNothingWhenEmpty) {
  EXPECT_TRUE(IpRangeSet{}.empty());
  EXPECT_FALSE(IpRangeSet{}.contains(address("0.0.0.0")));
  EXPECT_FALSE(IpRangeSet{}.contains(address("::")));
}

TEST(IpRangeSet, FindsAddressesInAnyOfItsRanges) {
  const std::vector ranges{range("10.0.0.0/8"), range("10.1.0.0/16"), range("192.168.1.1"),
                           range("2001:db8::/32"), range("::1")};
  const IpRangeSet set{ranges};
  for (const char* inside : {"10.0.0.0", "10.1.2.3", "10.255.255.255", "192.168.1.1",
                             "2001:db8:ffff::1", "::1", "::ffff:10.1.1.1"}) {
    EXPECT_TRUE(set.contains(address(inside))) << inside;
  }
  for (const char* outside : {"9.255.255.255", "11.0.0.0", "192.168.1.0", "192.168.1.2",
                              "2001:db9::", "2001:db7:ffff::", "::2", "a00::"}) {
    EXPECT_FALSE(set.contains(address(outside))) << outside;
  }
}

// A wide range must be found also when narrow ones inside it sort between it and the address.
TEST(IpRangeSet, AnswersAsAskingEveryRangeWould) {
  testing::check_property(300, [] {
    const auto make_address = [](std::uint32_t bits, bool is_v4) {
      if (is_v4) return IpAddress::v4(bits);
      std::array<std::uint8_t, 16> bytes{};
      for (unsigned i = 0; i < 4; ++i) bytes[i] = static_cast<std::uint8_t>(bits >> (24 - 8 * i));
      return IpAddress::v6(bytes);
    };
    std::vector<IpRange> ranges;
    for (int i = *rc::gen::inRange(0, 20); i > 0; --i) {
      const auto bits = *rc::gen::inRange(0U, 33U);
      const IpAddress any =
          make_address(*rc::gen::inRange(0U, 64U) << 26U | *rc::gen::inRange(0U, 16U),
                       *rc::gen::arbitrary<bool>());
      ranges.push_back({any.masked(bits), bits});
    }
    const IpRangeSet set{ranges};
    const IpAddress asked =
        make_address(*rc::gen::inRange(0U, 64U) << 26U | *rc::gen::inRange(0U, 16U),
                     *rc::gen::arbitrary<bool>());
    const bool expected = std::any_of(ranges.begin(), ranges.end(),
                                      [&](const IpRange& one) { return one.contains(asked); });
    RC_ASSERT(set.contains(asked) == expected);
  });
}

}  // namespace
}  // namespace sluice::identity
