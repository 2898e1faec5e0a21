#include "identity/proxy_protocol.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice::identity {
namespace {

using State = ProxyParse::State;
using namespace std::string_literals;

constexpr std::string_view kSignature{"\r\n\r\n\0\r\nQUIT\n", 12};

IpAddress address(std::string_view text) { return IpAddress::parse(text).value(); }

std::string u16(std::size_t value) {
  return {static_cast<char>(value >> 8U), static_cast<char>(value & 0xffU)};
}

std::string extension(char type, std::string_view value) {
  return std::string{type} + u16(value.size()) + std::string{value};
}

std::string version2(char command, char family, std::string_view block) {
  return std::string{kSignature} + command + family + u16(block.size()) + std::string{block};
}

const std::string kV4Block = "\x01\x02\x03\x04\x0a\x00\x00\x01\x30\x39\x01\xbb"s;

// With the right checksum as its last extension.
std::string with_checksum(char family, const std::string& block) {
  std::string header = version2('\x21', family, block + extension(3, "\0\0\0\0"s));
  const std::uint32_t sum = crc32c(header);
  for (unsigned i = 0; i < 4; ++i) {
    header[header.size() - 4 + i] = static_cast<char>(sum >> (24 - 8 * i));
  }
  return header;
}

// A header is complete at its last byte and not before, whatever follows it.
void expect_incremental(const std::string& header) {
  for (std::size_t length = 0; length < header.size(); ++length) {
    EXPECT_EQ(parse_proxy_header(std::string_view{header}.substr(0, length)).state,
              State::need_more)
        << length;
  }
  const ProxyParse parse = parse_proxy_header(header + "GET / HTTP/1.1\r\n");
  EXPECT_EQ(parse.state, State::done) << parse.why;
  EXPECT_EQ(parse.consumed, header.size());
}

void expect_malformed(const std::string& bytes) {
  const ProxyParse parse = parse_proxy_header(bytes);
  EXPECT_EQ(parse.state, State::malformed) << bytes;
  EXPECT_STRNE(parse.why, "") << bytes;
}

TEST(ProxyProtocol1, ReadsBothFamilies) {
  const ProxyParse v4 = parse_proxy_header("PROXY TCP4 1.2.3.4 10.0.0.1 12345 443\r\nrest");
  ASSERT_EQ(v4.state, State::done) << v4.why;
  EXPECT_TRUE(v4.header.has_addresses);
  EXPECT_EQ(v4.header.source, address("1.2.3.4"));
  EXPECT_EQ(v4.header.destination, address("10.0.0.1"));
  EXPECT_EQ(v4.header.source_port, 12345);
  EXPECT_EQ(v4.header.destination_port, 443);
  EXPECT_EQ(v4.consumed, 39U);
  const ProxyParse v6 = parse_proxy_header("PROXY TCP6 2001:db8::1 ::ffff:10.0.0.1 0 65535\r\n");
  ASSERT_EQ(v6.state, State::done) << v6.why;
  EXPECT_EQ(v6.header.source, address("2001:db8::1"));
  EXPECT_EQ(v6.header.destination, address("10.0.0.1"));
}

TEST(ProxyProtocol1, LeavesTheSocketsAddressForUnknownClients) {
  for (const char* line : {"PROXY UNKNOWN\r\n", "PROXY UNKNOWN ffff:: ffff:: 65535 65535\r\n"}) {
    const ProxyParse parse = parse_proxy_header(line);
    ASSERT_EQ(parse.state, State::done) << line;
    EXPECT_FALSE(parse.header.has_addresses);
    EXPECT_EQ(parse.consumed, std::string_view{line}.size());
  }
}

TEST(ProxyProtocol1, IsReadInAnyPieces) {
  expect_incremental("PROXY TCP4 1.2.3.4 10.0.0.1 12345 443\r\n");
  expect_incremental("PROXY UNKNOWN\r\n");
}

TEST(ProxyProtocol1, RefusesWhatIsNotExact) {
  for (const char* line :
       {"PROXY TCP4 1.2.3.4 10.0.0.1 12345\r\n", "PROXY TCP4 1.2.3.4 10.0.0.1 12345 443 \r\n",
        "PROXY TCP4 1.2.3.4  10.0.0.1 12345 443\r\n", "PROXY  TCP4 1.2.3.4 10.0.0.1 1 2\r\n",
        "PROXY TCP4 1.2.3.4 10.0.0.1 65536 443\r\n", "PROXY TCP4 1.2.3.4 10.0.0.1 -1 443\r\n",
        "PROXY TCP4 1.2.3.4 10.0.0.1 0443 443\r\n", "PROXY TCP4 1.2.3 10.0.0.1 1 443\r\n",
        "PROXY TCP4 ::1 ::1 1 2\r\n", "PROXY TCP6 1.2.3.4 10.0.0.1 1 2\r\n",
        "PROXY UDP4 1.2.3.4 10.0.0.1 1 2\r\n", "PROXY TCP4 1.2.3.4 10.0.0.1 1 2\n",
        "PROXY TCP4 1.2.3.4 10.0.0.1 1 2\rx", "PROXY \r\n", "PROXY UNKNOWNX\r\n"}) {
    expect_malformed(line);
  }
}

TEST(ProxyProtocol1, HasAtMostOneHundredAndSevenBytes) {
  const std::string longest = "PROXY UNKNOWN " + std::string(91, 'x') + "\r\n";
  ASSERT_EQ(longest.size(), 107U);
  EXPECT_EQ(parse_proxy_header(longest).state, State::done);
  expect_malformed("PROXY UNKNOWN " + std::string(92, 'x') + "\r\n");
  expect_malformed("PROXY UNKNOWN " + std::string(93, 'x'));
}

// A client that speaks HTTP to such a listener must not be taken for anything else.
TEST(ProxyProtocol, IsNeverGuessed) {
  for (const char* bytes : {"G", "GET / HTTP/1.1\r\n", "PROX ", "PROXY\r\n", "proxy TCP4", "\n",
                            "\r\n\r\nx", "\x16\x03\x01"}) {
    expect_malformed(bytes);
  }
}

TEST(ProxyProtocol2, ReadsIpv4) {
  const ProxyParse parse = parse_proxy_header(version2('\x21', '\x11', kV4Block) + "rest");
  ASSERT_EQ(parse.state, State::done) << parse.why;
  EXPECT_TRUE(parse.header.has_addresses);
  EXPECT_EQ(parse.header.source, address("1.2.3.4"));
  EXPECT_EQ(parse.header.destination, address("10.0.0.1"));
  EXPECT_EQ(parse.header.source_port, 12345);
  EXPECT_EQ(parse.header.destination_port, 443);
  EXPECT_EQ(parse.header.transport, ProxyTransport::stream);
  EXPECT_EQ(parse.consumed, 28U);
  EXPECT_EQ(parse_proxy_header(version2('\x21', '\x12', kV4Block)).header.transport,
            ProxyTransport::datagram);
}

TEST(ProxyProtocol2, ReadsIpv6AndTakesMappedAddressesForIpv4) {
  const std::string block = "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"s +
                            "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x01"s + "\x30\x39\x01\xbb";
  const ProxyParse parse = parse_proxy_header(version2('\x21', '\x21', block));
  ASSERT_EQ(parse.state, State::done) << parse.why;
  EXPECT_EQ(parse.header.source, address("2001:db8::1"));
  EXPECT_EQ(parse.header.destination, address("10.0.0.1"));
  EXPECT_EQ(parse.header.source_port, 12345);
  EXPECT_EQ(parse.header.destination_port, 443);
}

TEST(ProxyProtocol2, LeavesTheSocketsAddressWhereThereIsNoOther) {
  const std::string unix_block(216, 'u');
  for (const std::string& header :
       {version2('\x21', '\x00', ""), version2('\x21', '\x31', unix_block),
        version2('\x21', '\x32', unix_block), version2('\x20', '\x00', "")}) {
    const ProxyParse parse = parse_proxy_header(header);
    ASSERT_EQ(parse.state, State::done) << parse.why;
    EXPECT_FALSE(parse.header.has_addresses);
    EXPECT_EQ(parse.consumed, header.size());
  }
}

// The proxy's own health checks: whatever else stands in such a header is not looked at.
TEST(ProxyProtocol2, OfTheProxyItselfNamesNoClient) {
  const std::string header = version2('\x20', '\x11', kV4Block + "\xff\xff\xff");
  const ProxyParse parse = parse_proxy_header(header);
  ASSERT_EQ(parse.state, State::done) << parse.why;
  EXPECT_TRUE(parse.header.is_local);
  EXPECT_FALSE(parse.header.has_addresses);
  EXPECT_EQ(parse.consumed, header.size());
}

TEST(ProxyProtocol2, ShowsTheExtensionsThatMatter) {
  const std::string tls = "\x01\0\0\0\0"s + extension('\x21', "TLSv1.3");
  const std::string header =
      version2('\x21', '\x11',
               kV4Block + extension(1, "h2") + extension(2, "api.example.com") +
                   extension(4, "padding") + extension(5, "id-1") + extension('\x20', tls) +
                   extension('\x30', "ns") + extension('\xea', "vendor"));
  const ProxyParse parse = parse_proxy_header(header);
  ASSERT_EQ(parse.state, State::done) << parse.why;
  EXPECT_EQ(parse.header.alpn, "h2");
  EXPECT_EQ(parse.header.authority, "api.example.com");
  EXPECT_EQ(parse.header.unique_id, "id-1");
}

TEST(ProxyProtocol2, ChecksTheChecksum) {
  std::string header = with_checksum('\x11', kV4Block);
  EXPECT_EQ(parse_proxy_header(header).state, State::done) << parse_proxy_header(header).why;
  for (const std::size_t at : {std::size_t{16}, std::size_t{27}, header.size() - 1}) {
    std::string damaged = header;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    expect_malformed(damaged);
  }
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);  // the value that every description gives
}

TEST(ProxyProtocol2, IsReadInAnyPieces) {
  expect_incremental(with_checksum('\x11', kV4Block + extension(2, "name")));
  expect_incremental(version2('\x20', '\x00', ""));
}

TEST(ProxyProtocol2, RefusesWhatIsNotExact) {
  expect_malformed(version2('\x11', '\x11', kV4Block));  // version
  expect_malformed(version2('\x22', '\x11', kV4Block));  // command
  expect_malformed(version2('\x21', '\x13', kV4Block));  // transport
  expect_malformed(version2('\x21', '\x41', kV4Block));  // family
  expect_malformed(version2('\x21', '\x01', ""));
  expect_malformed(version2('\x21', '\x11', kV4Block.substr(1)));
  expect_malformed(version2('\x21', '\x21', kV4Block));
  expect_malformed(version2('\x21', '\x31', std::string(215, 'u')));
  expect_malformed(version2('\x21', '\x11', kV4Block + "\x01"));
  expect_malformed(version2('\x21', '\x11', kV4Block + "\x01\0\x02x"s));
  expect_malformed(version2('\x21', '\x11', kV4Block + extension(3, "abc")));
  expect_malformed(version2('\x21', '\x11', kV4Block + extension(5, std::string(129, 'i'))));
  expect_malformed(version2('\x21', '\x11', kV4Block + extension('\x20', "1234")));
  expect_malformed(version2('\x21', '\x11', kV4Block + extension('\x20', "12345\x21\0\x09"s)));
}

TEST(ProxyProtocol2, IsRefusedBeforeAMistakeIsPaidFor) {
  EXPECT_EQ(parse_proxy_header(std::string{kSignature} + "\x31").state, State::malformed);
  const std::string announced = std::string{kSignature} + "\x21\x11" + u16(60000);
  EXPECT_EQ(parse_proxy_header(announced).state, State::malformed);
  EXPECT_EQ(parse_proxy_header(announced, 65551).state, State::need_more);
}

}  // namespace
}  // namespace sluice::identity
