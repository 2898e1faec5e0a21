#include <sluice/address.h>

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

IpAddress address(std::string_view text) { return IpAddress::parse(text).value(); }
IpRange range(std::string_view text) { return IpRange::parse(text).value(); }

TEST(IpAddress, IsWrittenInOneWay) {
  EXPECT_EQ(address("1.2.3.4").text(), "1.2.3.4");
  EXPECT_EQ(address("2001:DB8:0:0:0:0:0:1").text(), "2001:db8::1");
  EXPECT_EQ(address("::").text(), "::");
  EXPECT_EQ(IpAddress::v4(0x01020304), address("1.2.3.4"));
}

// By its bits, however it is written.
TEST(IpAddress, OfIpv4InIpv6IsTheIpv4One) {
  for (const char* text : {"::ffff:1.2.3.4", "::ffff:102:304", "0:0:0:0:0:FFFF:0102:0304"}) {
    EXPECT_EQ(address(text), address("1.2.3.4")) << text;
  }
  EXPECT_FALSE(address("::fffe:1.2.3.4").is_v4);
  EXPECT_FALSE(address("::1.2.3.4").is_v4);
}

TEST(IpAddress, RefusesWhatIsNone) {
  const std::string with_zero{"1.2.3.4\0", 8};
  for (const std::string& text :
       {std::string{""}, std::string{"1.2.3"}, std::string{"1.2.3.256"}, std::string{"1.2.3.04"},
        std::string{"0x1.2.3.4"}, std::string{" 1.2.3.4"}, std::string{"1.2.3.4 "},
        std::string{"1.2.3.4:80"}, std::string{"[::1]"}, std::string{"::1%eth0"},
        std::string{":::"}, std::string{"1::2::3"}, std::string{"12345::"}, with_zero,
        std::string(1000, '1')}) {
    EXPECT_FALSE(IpAddress::parse(text)) << text;
  }
}

TEST(IpAddress, MasksAnyNumberOfBits) {
  EXPECT_EQ(address("255.255.255.255").masked(0), address("0.0.0.0"));
  EXPECT_EQ(address("255.255.255.255").masked(9), address("255.128.0.0"));
  EXPECT_EQ(address("255.255.255.255").masked(31), address("255.255.255.254"));
  EXPECT_EQ(address("255.255.255.255").masked(64), address("255.255.255.255"));
  EXPECT_EQ(address("2001:db8:1:2:3:4:5:6").masked(64), address("2001:db8:1:2::"));
  EXPECT_EQ(address("ffff::").masked(3), address("e000::"));
  const IpAddress ones = address("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
  for (unsigned bits = 0; bits <= 128; ++bits) {
    IpAddress expected = address("::");
    for (unsigned i = 0; i < bits; ++i) {
      expected.bytes[i / 8] = static_cast<std::uint8_t>(expected.bytes[i / 8] | 0x80U >> i % 8);
    }
    EXPECT_EQ(ones.masked(bits), expected) << bits;
  }
}

TEST(IpRange, ContainsWhatBeginsAlike) {
  EXPECT_TRUE(range("10.0.0.0/8").contains(address("10.255.0.1")));
  EXPECT_FALSE(range("10.0.0.0/8").contains(address("11.0.0.0")));
  EXPECT_TRUE(range("0.0.0.0/0").contains(address("8.8.8.8")));
  EXPECT_FALSE(range("0.0.0.0/0").contains(address("::1")));
  EXPECT_FALSE(range("::/0").contains(address("1.2.3.4")));
  EXPECT_TRUE(range("::ffff:10.0.0.0/104").contains(address("10.1.1.1")));
  EXPECT_TRUE(range("2001:db8::/33").contains(address("2001:db8:7fff::1")));
  EXPECT_FALSE(range("2001:db8::/33").contains(address("2001:db8:8000::1")));
  EXPECT_TRUE(range("1.2.3.4").contains(address("1.2.3.4")));
  EXPECT_FALSE(range("1.2.3.4").contains(address("1.2.3.5")));
}

TEST(IpRange, IsWrittenAsItIsRead) {
  for (const char* text : {"10.0.0.0/8", "1.2.3.4", "2001:db8::/32", "::1", "0.0.0.0/0"}) {
    EXPECT_EQ(range(text).text(), text);
  }
}

TEST(IpRange, RefusesWhatIsNone) {
  for (const char* text : {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/08", "10.0.0.1/8",
                           "::1/64", "10/8", "", "/8", "::ffff:10.0.0.0/90", "10.0.0.0/8/8"}) {
    EXPECT_FALSE(IpRange::parse(text)) << text;
  }
}

}  // namespace
}  // namespace sluice
