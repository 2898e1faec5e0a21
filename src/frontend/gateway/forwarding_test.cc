#include "frontend/gateway/forwarding.h"

#include "identity/forwarded.h"
#include <sluice/address.h>

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace sluice::gateway {
namespace {

std::string written(const ForwardedHop& hop) {
  std::array<char, 512> room;
  TextWriter writer{room};
  write_hop(writer, hop);
  return std::string{writer.text()};
}

TEST(Forwarding, KnowsTheWordsOfProxiesInEverySpelling) {
  EXPECT_EQ(proxy_word("X-Forwarded-For"), ProxyWord::forwarded_for);
  EXPECT_EQ(proxy_word("x_forwarded_for"), ProxyWord::forwarded_for);
  EXPECT_EQ(proxy_word("X_Forwarded-PROTO"), ProxyWord::proto);
  EXPECT_EQ(proxy_word("x-forwarded-host"), ProxyWord::host);
  EXPECT_EQ(proxy_word("x-forwarded-port"), ProxyWord::port);
  EXPECT_EQ(proxy_word("Forwarded"), ProxyWord::forwarded);
  EXPECT_EQ(proxy_word("X-Request-ID"), ProxyWord::request_id);
  EXPECT_EQ(proxy_word("X-Real-IP"), ProxyWord::other);
  for (const char* name : {"X-Forwarded-Client-Cert", "X-Forwarded-User", "x_forwarded_prefix",
                           "X-Forwarded-Ssl", "X-Client-IP", "True-Client-IP", "X-Original-URL",
                           "X_Rewrite_Url", "X-Cluster-Client-Ip", "x-forwarded-for2"}) {
    EXPECT_EQ(proxy_word(name), ProxyWord::other) << name;
  }
}

TEST(Forwarding, LeavesOtherHeadersAlone) {
  for (const char* name : {"", "x", "f", "from", "x-forwarded", "x-forwardedfor", "x-api-key", "te",
                           "accept", "xxforwarded-for"}) {
    EXPECT_EQ(proxy_word(name), ProxyWord::none) << name;
  }
}

// RFC 7239: addresses of IPv6 in brackets, and quoted, as everything that is no token.
TEST(Forwarding, WritesAHop) {
  EXPECT_EQ(written({.address = "192.0.2.1", .host = "a.example", .proto = "http"}),
            "for=192.0.2.1;host=a.example;proto=http");
  EXPECT_EQ(written({.address = "2001:db8::1", .host = "a.example:8080", .proto = "https"}),
            "for=\"[2001:db8::1]\";host=\"a.example:8080\";proto=https");
  EXPECT_EQ(written({.address = "", .host = "", .proto = "http"}), "for=unknown;proto=http");
  EXPECT_EQ(written({.address = "192.0.2.1", .host = R"(a"b\c)", .proto = "http"}),
            R"(for=192.0.2.1;host="a\"b\\c";proto=http)");
}

// Whoever stands behind us and reads it finds the address that went in.
TEST(Forwarding, IsReadAsItWasMeant) {
  for (const char* address : {"192.0.2.1", "2001:db8::1"}) {
    const std::string hop = written({.address = address, .host = "h:1", .proto = "http"});
    EXPECT_EQ(identity::parse_forwarded_element(hop), IpAddress::parse(address)) << hop;
  }
}

}  // namespace
}  // namespace sluice::gateway
