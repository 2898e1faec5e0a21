#include "net/http/header_lists.h"

#include "net/http/known_header.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace sluice::net {
namespace {

std::vector<std::string> elements(std::string_view value) {
  std::vector<std::string> found;
  ListWalk walk{value};
  while (const auto element = walk.next()) found.emplace_back(*element);
  return found;
}

TEST(ListWalk, GivesElementsTrimmedAndLeavesEmptyOnesOut) {
  EXPECT_EQ(elements("a"), std::vector<std::string>{"a"});
  EXPECT_EQ(elements("a, b ,\tc"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(elements(",, a,,b,"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(elements("").empty());
  EXPECT_TRUE(elements(" , ,").empty());
}

TEST(TokenList, IsToldFromOtherText) {
  EXPECT_TRUE(is_token_list("a, b"));
  EXPECT_TRUE(is_token_list(""));
  EXPECT_FALSE(is_token_list("a b"));
  EXPECT_FALSE(is_token_list("a, \"b\""));
  EXPECT_TRUE(list_contains("gzip, Trailers", "trailers"));
  EXPECT_FALSE(list_contains("trailersx, x", "trailers"));
}

TEST(ConnectionOptions, AreThoseOfAllLines) {
  const std::array<HeaderView, 4> headers{
      {{"Connection", "a, b"}, {"X", "not"}, {"CONNECTION", ""}, {"connection", "c"}}};
  std::vector<std::string> found;
  ConnectionOptions options{headers};
  while (const auto option = options.next()) found.emplace_back(*option);
  EXPECT_EQ(found, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(HopByHop, IsWhatTheStandardNamesInAnyLetters) {
  for (const char* const name :
       {"Connection", "keep-alive", "PROXY-CONNECTION", "TE", "Trailer", "Transfer-Encoding",
        "Upgrade", "Proxy-Authenticate", "Proxy-Authorization", "HTTP2-Settings"}) {
    EXPECT_TRUE(is_hop_by_hop(name, {})) << name;
  }
  for (const char* const name : {"Host", "Content-Length", "Expect", "Accept", "Connection2", "T-",
                                 "Upgrade-Insecure-Requests", "Keep_Alive", "Trailers", "X"}) {
    EXPECT_FALSE(is_hop_by_hop(name, {})) << name;
  }
}

TEST(HopByHop, IsWhatConnectionNames) {
  const std::array<HeaderView, 2> headers{{{"Connection", "close, X-Mine"}, {"x-mine", "1"}}};
  EXPECT_TRUE(is_hop_by_hop("x-mine", headers));
  EXPECT_FALSE(is_hop_by_hop("x-mine2", headers));
  EXPECT_FALSE(is_hop_by_hop("close2", headers));
}

// A client that could name them would have the proxy take away who it is.
TEST(HopByHop, NeverTakesAwayWhatServersRelyOn) {
  for (const char* const name :
       {"Host", "Content-Length", "Authorization", "X-Forwarded-For", "x-forwarded-proto",
        "X-Forwarded-Anything", "Forwarded", "X-Real-IP", "Cookie", "Via", "Content-Type"}) {
    const std::array<HeaderView, 1> headers{{{"Connection", name}}};
    EXPECT_FALSE(is_hop_by_hop(name, headers)) << name;
    EXPECT_TRUE(is_kept_from_connection(name)) << name;
  }
}

// Letters and dashes are compared by one bit less; nothing else may pass for them.
TEST(KnownHeader, IsNotMistakenForAnother) {
  EXPECT_EQ(known_header("Content-Length"), KnownHeader::content_length);
  EXPECT_EQ(known_header("cONTENT-lENGTH"), KnownHeader::content_length);
  EXPECT_EQ(known_header("HTTP2-Settings"), KnownHeader::http2_settings);
  for (const char* const name :
       {"Content_Length", "Content-Lengt", "ContentALength", "content.length", "Content-Lengtx",
        "x", "", "Transfer_Encoding", "Hosu", "te-"}) {
    EXPECT_EQ(known_header(name), KnownHeader::other) << name;
  }
  for (const char* const name :
       {"Content_Length", "transfer_ENCODING", "Keep_Alive", "HTTP2_Settings", "Proxy_Connection",
        "Proxy_Authorization", "proxy_authenticate"}) {
    EXPECT_TRUE(imitates_known(name)) << name;
  }
  for (const char* const name : {"Content-Length", "Content_Lengtx", "Content_Type", "My_Header_",
                                 "", "x_y", "Transfer_Encodin_", "proxy_authentication"}) {
    EXPECT_FALSE(imitates_known(name)) << name;
  }
  for (unsigned byte = 0x21; byte < 0x7f; ++byte) {
    const std::string name{'t', static_cast<char>(byte)};
    EXPECT_EQ(known_header(name) == KnownHeader::te, byte == 'e' || byte == 'E') << name;
  }
}

}  // namespace
}  // namespace sluice::net
