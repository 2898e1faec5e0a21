#include "net/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::net {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Endpoint parsed(const std::string& text) { return Endpoint::parse(text).value(); }

std::string refusal(const std::string& text) {
  const Parsed<Endpoint> result = Endpoint::parse(text);
  return result ? "accepted" : result.error().text();
}

TEST(Endpoint, OfEveryKindIsReadAndWritten) {
  EXPECT_EQ(parsed("127.0.0.1:8080"), Endpoint::of(*IpAddress::parse("127.0.0.1"), 8080));
  EXPECT_EQ(parsed("[::1]:80"), Endpoint::of(*IpAddress::parse("::1"), 80));
  EXPECT_EQ(parsed(":8080"), (Endpoint{.port = 8080}));
  EXPECT_EQ(parsed("127.0.0.1:0").port, 0);
  EXPECT_EQ(parsed("unix:/run/sluice.sock"), Endpoint::of_path("/run/sluice.sock"));
  const Endpoint named = parsed("LocalHost:3000");
  EXPECT_EQ(named.kind, Endpoint::Kind::name);
  EXPECT_EQ(named.name, "localhost");
  for (const char* text : {"127.0.0.1:8080", "[::1]:80", ":8080", "unix:/a b", "localhost:3000",
                           "redis_1.internal:6379", "[2001:db8::1]:65535"}) {
    EXPECT_EQ(parsed(text).text(), text);
  }
}

// The same client must not have two addresses, and the same listener not two texts.
TEST(Endpoint, OfAMappedAddressIsTheIpv4One) {
  EXPECT_EQ(parsed("[::ffff:10.0.0.1]:80").text(), "10.0.0.1:80");
}

TEST(Endpoint, ThatIsMalformedIsRefusedWithARemedy) {
  EXPECT_THAT(refusal("127.0.0.1"), HasSubstr("give a port"));
  EXPECT_THAT(refusal(""), HasSubstr("give a port"));
  for (const char* text :
       {"a:", "a:x", "a:-1", "a:+1", "a: 1", "a:65536", "a:080", "a:99999999999"}) {
    EXPECT_THAT(refusal(text), HasSubstr("0 to 65535")) << text;
  }
  EXPECT_THAT(refusal("::1:80"), HasSubstr("brackets"));
  EXPECT_THAT(refusal("[127.0.0.1]:80"), HasSubstr("IPv6"));
  EXPECT_THAT(refusal("[fe80::1%eth0]:80"), HasSubstr("zone"));
  EXPECT_THAT(refusal("[]:80"), HasSubstr("IPv6"));
  EXPECT_THAT(refusal("unix:relative"), HasSubstr("whole path"));
  EXPECT_THAT(refusal("Unix:5542"), HasSubstr("whole path"));
  EXPECT_THAT(refusal("unix:/" + std::string(200, 'x')), HasSubstr("107"));
  for (const char* text :
       {"256.1.1.1:80", "1.2.3:80", "01.2.3.4:80", "a..b:80", ".a:80", "a.:80", "-a:80", "a-:80",
        "a b:80", "http://a:80", "a/b:80", "user@a:80", "[::1:80", "[::1]x:80", "\xc3\xa4:80"}) {
    EXPECT_NE(refusal(text), "accepted") << text;
  }
  EXPECT_NE(refusal(std::string(64, 'a') + ":80"), "accepted");
  EXPECT_NE(refusal(std::string(300, 'a') + ":80"), "accepted");
  EXPECT_NE(refusal(std::string{"a\0b:80", 6}), "accepted");
}

// The most likely thing to be pasted, and the text between its colons is no IPv6 address.
TEST(Endpoint, ThatIsAUrlIsToldHowToBeWritten) {
  EXPECT_THAT(refusal("http://127.0.0.1:3000"),
              HasSubstr("leave out http://, and write 127.0.0.1:3000"));
  EXPECT_THAT(refusal("HTTP://api.internal/v1?a=b"), EndsWith("write api.internal:80"));
  EXPECT_THAT(refusal("http://[::1]:3000/"), EndsWith("write [::1]:3000"));
  EXPECT_THAT(refusal("https://api.internal"),
              HasSubstr("leave out https://, and write api.internal:443; 'tls' beside it"));
  for (const char* text : {"http://", "http://a b", "http://user:word@a:80", "://", "a://b://c"}) {
    EXPECT_THAT(refusal(text), Not(HasSubstr("brackets"))) << text;
    EXPECT_THAT(refusal(text), HasSubstr("write ")) << text;
  }
}

}  // namespace
}  // namespace sluice::net
