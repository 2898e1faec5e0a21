#include "identity/client_address.h"

#include "identity/forwarded.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::identity {
namespace {

IpAddress address(std::string_view text) { return IpAddress::parse(text).value(); }

ClientAddressFinder finder(AddressSource source, std::string header = {}, unsigned hops = 0) {
  return ClientAddressFinder::create({.source = source,
                                      .trusted_proxies = {IpRange::parse("10.0.0.0/8").value(),
                                                          IpRange::parse("fd00::/8").value()},
                                      .header = std::move(header),
                                      .trusted_hops = hops})
      .value();
}

ClientAddress find(const ClientAddressFinder& finder, const std::vector<HeaderView>& headers,
                   std::string_view peer = "10.0.0.1") {
  RequestView request;
  request.headers = headers;
  request.peer = address(peer);
  return finder.find(request);
}

bool ignores(const ClientAddressFinder& finder, const std::vector<HeaderView>& headers,
             std::string_view peer) {
  RequestView request;
  request.headers = headers;
  request.peer = address(peer);
  return finder.ignores_forwarding(request);
}

std::string xff(std::string_view value, std::string_view peer = "10.0.0.1") {
  return find(finder(AddressSource::x_forwarded_for), {{"X-Forwarded-For", value}}, peer)
      .address.text();
}

std::string forwarded(std::string_view value) {
  return find(finder(AddressSource::forwarded), {{"Forwarded", value}}).address.text();
}

TEST(ClientAddress, IsThePeerWhenNoHeaderIsChosen) {
  const ClientAddress found =
      find(finder(AddressSource::peer), {{"x-forwarded-for", "1.2.3.4"}}, "10.0.0.1");
  EXPECT_EQ(found.address, address("10.0.0.1"));
  EXPECT_TRUE(found.through_trusted);
  EXPECT_FALSE(ignores(finder(AddressSource::peer), {{"x-forwarded-for", "1.2.3.4"}}, "10.0.0.1"));
}

TEST(ClientAddress, IgnoresHeadersOfAPeerThatIsNotTrustedAndTellsSo) {
  for (const char* name : {"X-Forwarded-For", "Forwarded"}) {
    const std::vector<HeaderView> headers{{name, "1.2.3.4"}};
    const ClientAddress found =
        find(finder(AddressSource::x_forwarded_for), headers, "198.51.100.7");
    EXPECT_EQ(found.address, address("198.51.100.7"));
    EXPECT_FALSE(found.through_trusted);
    EXPECT_TRUE(ignores(finder(AddressSource::x_forwarded_for), headers, "198.51.100.7")) << name;
  }
  const ClientAddressFinder named = finder(AddressSource::header, "x-real-ip");
  EXPECT_TRUE(ignores(named, {{"X-Real-IP", "1.2.3.4"}}, "198.51.100.7"));
  EXPECT_EQ(find(named, {{"X-Real-IP", "1.2.3.4"}}, "198.51.100.7").address,
            address("198.51.100.7"));
  EXPECT_FALSE(
      ignores(finder(AddressSource::x_forwarded_for), {{"accept", "*/*"}}, "198.51.100.7"));
}

TEST(ClientAddress, IsTheLastOneThatNoTrustedProxyHas) {
  EXPECT_EQ(xff("1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(xff("6.6.6.6, 1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(xff("6.6.6.6, 1.2.3.4, 10.9.9.9,10.1.1.1"), "1.2.3.4");
  EXPECT_EQ(xff("6.6.6.6, 1.2.3.4", "fd00::1"), "1.2.3.4");
}

TEST(ClientAddress, MayCarryAPort) {
  EXPECT_EQ(xff("1.2.3.4:5678"), "1.2.3.4");
  EXPECT_EQ(xff("[2001:db8::1]:5678"), "2001:db8::1");
  EXPECT_EQ(xff("[2001:db8::1]"), "2001:db8::1");
  EXPECT_EQ(xff("2001:db8::1"), "2001:db8::1");
  EXPECT_EQ(xff("::ffff:1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(xff("6.6.6.6, [::ffff:10.1.1.1]:80"), "6.6.6.6");
}

// What does not parse proves nothing about who is behind it: the last proxy answers for it.
TEST(ClientAddress, StopsAtWhatDoesNotParse) {
  for (const char* value :
       {"", ",", "unknown", "1.2.3.4, unknown", "1.2.3.4,", "1.2.3.4, 5.6.7.8:", "1.2.3.4:99999",
        "1.2.3.4:-1", "[1.2.3.4]", "[2001:db8::1", "[2001:db8::1]80", "2001:db8::1]:80",
        "1.2.3.4 5.6.7.8", "_hidden", "\"1.2.3.4\"", "1.2.3.4:123456", "01.2.3.4"}) {
    EXPECT_EQ(xff(value), "10.0.0.1") << value;
  }
  EXPECT_EQ(xff("1.2.3.4, bad, 10.2.2.2"), "10.2.2.2");
}

TEST(ClientAddress, IsTheLeftmostWhereAllAreTrusted) {
  EXPECT_EQ(xff("10.3.3.3, 10.2.2.2"), "10.3.3.3");
}

// Proxies may add a line of their own instead of extending the one there is.
TEST(ClientAddress, JoinsLinesInTheirOrder) {
  const ClientAddressFinder chosen = finder(AddressSource::x_forwarded_for);
  EXPECT_EQ(find(chosen, {{"X-Forwarded-For", "6.6.6.6"},
                          {"accept", "*/*"},
                          {"x-forwarded-for", "1.2.3.4, 10.1.1.1"},
                          {"X-FORWARDED-FOR", "10.2.2.2"}})
                .address,
            address("1.2.3.4"));
}

TEST(ClientAddress, NeverMixesSources) {
  const std::vector<HeaderView> both{
      {"X-Forwarded-For", "1.1.1.1"}, {"Forwarded", "for=2.2.2.2"}, {"X-Real-IP", "3.3.3.3"}};
  EXPECT_EQ(find(finder(AddressSource::x_forwarded_for), both).address, address("1.1.1.1"));
  EXPECT_EQ(find(finder(AddressSource::forwarded), both).address, address("2.2.2.2"));
  EXPECT_EQ(find(finder(AddressSource::header, "x-real-ip"), both).address, address("3.3.3.3"));
  EXPECT_EQ(find(finder(AddressSource::forwarded), {{"X-Forwarded-For", "1.1.1.1"}}).address,
            address("10.0.0.1"));
}

TEST(ClientAddress, WalksOnlySoFar) {
  std::string value = "1.2.3.4";
  for (int i = 0; i < 1000; ++i) value += ", 10.0.0.7";
  EXPECT_EQ(xff(value), "10.0.0.7");
}

TEST(ClientAddress, OfASingleHeaderMustStandThereOnce) {
  const ClientAddressFinder chosen = finder(AddressSource::header, "cf-connecting-ip");
  EXPECT_EQ(find(chosen, {{"CF-Connecting-IP", " 2001:db8::5 "}}).address, address("2001:db8::5"));
  EXPECT_EQ(find(chosen, {{"CF-Connecting-IP", "1.2.3.4, 5.6.7.8"}}).address, address("10.0.0.1"));
  EXPECT_EQ(
      find(chosen, {{"CF-Connecting-IP", "6.6.6.6"}, {"cf-connecting-ip", "1.2.3.4"}}).address,
      address("10.0.0.1"));
  EXPECT_EQ(find(chosen, {}).address, address("10.0.0.1"));
}

// The two modes of Envoy: at the edge N hops mean the Nth from the right, else the (N + 1)th.
TEST(ClientAddress, CanBeCountedFromTheRight) {
  const std::vector<HeaderView> headers{{"x-forwarded-for", "1.1.1.1, 2.2.2.2"},
                                        {"x-forwarded-for", "3.3.3.3"}};
  const auto at = [&](unsigned hops) {
    const ClientAddressFinder counting =
        ClientAddressFinder::create({.source = AddressSource::trusted_hops, .trusted_hops = hops})
            .value();
    return find(counting, headers, "198.51.100.7").address.text();
  };
  EXPECT_EQ(at(1), "3.3.3.3");
  EXPECT_EQ(at(2), "2.2.2.2");
  EXPECT_EQ(at(3), "1.1.1.1");
  EXPECT_EQ(at(4), "198.51.100.7") << "too few elements leave the peer";
}

TEST(ClientAddress, IsCountedOnlyForTrustedPeersWhereThereIsAList) {
  const ClientAddressFinder counting = finder(AddressSource::trusted_hops, {}, 1);
  const std::vector<HeaderView> headers{{"x-forwarded-for", "3.3.3.3"}};
  EXPECT_EQ(find(counting, headers, "10.0.0.1").address, address("3.3.3.3"));
  const ClientAddress stranger = find(counting, headers, "198.51.100.7");
  EXPECT_EQ(stranger.address, address("198.51.100.7"));
  EXPECT_TRUE(ignores(counting, headers, "198.51.100.7"));
}

TEST(Forwarded, FindsTheAddressInFor) {
  EXPECT_EQ(forwarded("for=192.0.2.60;proto=http;by=203.0.113.43"), "192.0.2.60");
  EXPECT_EQ(forwarded("For=\"[2001:db8:cafe::17]:4711\""), "2001:db8:cafe::17");
  EXPECT_EQ(forwarded("proto=https;FOR=\"1.2.3.4:80\";host=\"a,b;for=6.6.6.6\""), "1.2.3.4");
  EXPECT_EQ(forwarded("for=6.6.6.6, for=1.2.3.4; proto=https , for=10.1.1.1"), "1.2.3.4");
  EXPECT_EQ(forwarded("for=\"[2001:db8::1]:_port\""), "2001:db8::1");
}

TEST(Forwarded, StopsAtWhatNamesNobody) {
  for (const char* value :
       {"", "for=unknown", "for=_hidden", "for=\"_gazonk\"", "proto=https", "for=", "for",
        "for=1.2.3.4;for=5.6.7.8", "for=\"1.2.3.4", "for=1.2.3.4 x", "for=[2001:db8::1]",
        "for=\"2001:db8::1\"", "for=\"1.2\\.3.4\"", "1.2.3.4", "for=1.2.3.4,", "for =1.2.3.4"}) {
    EXPECT_EQ(forwarded(value), "10.0.0.1") << value;
  }
  EXPECT_EQ(forwarded("for=6.6.6.6, for=unknown, for=10.2.2.2"), "10.2.2.2");
}

// A client that opens a quote must not swallow what the proxy appends behind it.
TEST(Forwarded, IsNotHiddenByAnOpenQuote) {
  EXPECT_EQ(forwarded("for=\"6.6.6.6, for=1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(forwarded("host=\"\\, for=1.2.3.4;proto=\"https\""), "1.2.3.4");
}

TEST(Forwarded, TakesACommaInQuotesForText) {
  EXPECT_EQ(forwarded("host=\"x, for=6.6.6.6\";for=1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(forwarded("host=\"x, for=6.6.6.6\""), "10.0.0.1");
}

TEST(ClientAddressConfig, IsRefusedWithARemedy) {
  EXPECT_NE(ClientAddressFinder::create({.source = AddressSource::forwarded})
                .error()
                .text()
                .find("trusted_proxies"),
            std::string::npos);
  const std::vector proxies{IpRange::parse("10.0.0.0/8").value()};
  EXPECT_FALSE(ClientAddressFinder::create(
      {.source = AddressSource::header, .trusted_proxies = proxies, .header = "X-Real-IP"}));
  EXPECT_FALSE(
      ClientAddressFinder::create({.source = AddressSource::header, .trusted_proxies = proxies}));
  EXPECT_FALSE(ClientAddressFinder::create({.source = AddressSource::trusted_hops}));
  EXPECT_FALSE(
      ClientAddressFinder::create({.source = AddressSource::trusted_hops, .trusted_hops = 65}));
}

}  // namespace
}  // namespace sluice::identity
