// The second opinion, on many heads made of good, odd and bad parts.

#include "net/http/http_parser_fixture.h"
#include "support/property.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::net {
namespace {

using fixture::HeaderRoom;

std::string any_of(const std::vector<std::string>& parts) { return *rc::gen::elementOf(parts); }

std::string any_lines() {
  static const std::vector<std::string> kLines{"Host: a\r\n",
                                               "Content-Length: 5\r\n",
                                               "Content-Length: 0\r\n",
                                               "Transfer-Encoding: chunked\r\n",
                                               "Transfer-Encoding: Chunked\r\n",
                                               "Transfer-Encoding: gzip, chunked\r\n",
                                               "X: y\r\n",
                                               "x: z\r\n",
                                               "X-Empty:\r\n",
                                               "X: \ta b\t \r\n",
                                               "X: \x80\xff\r\n",
                                               "Connection: close\r\n",
                                               "Connection: keep-alive, x\r\n",
                                               "Connection: ,\r\n",
                                               "Connection:\r\n",
                                               "Connection: a b\r\n",
                                               "Connection: upgrade\r\n",
                                               "Upgrade: websocket\r\n",
                                               "Upgrade: h2c, a/1\r\n",
                                               "Upgrade: a b\r\n",
                                               "Proxy-Connection: close\r\n",
                                               "Proxy-Connection: a b\r\n",
                                               "Expect: 100-continue\r\n",
                                               "Cookie: a=b; c=\"d\"\r\n",
                                               "X : y\r\n",
                                               " folded\r\n",
                                               "X: a\rb\r\n",
                                               "X: a\nb\r\n",
                                               "NoColon\r\n",
                                               "Content-Length: 1, 1\r\n",
                                               "Content-Length: +1\r\n",
                                               "!#$%&'*+-.^_`|~9aZ: t\r\n",
                                               "X:\r\n",
                                               "Content-Length: 9223372036854775807\r\n",
                                               "TE: trailers\r\n",
                                               "Transfer-Encoding: identity\r\n"};
  std::string text;
  const int count = *rc::gen::inRange(0, 7);
  for (int i = 0; i < count; ++i) text += any_of(kLines);
  return text;
}

TEST(HttpParser, ReadsTheSameInEveryRequestThatWeAccept) {
  static const std::vector<std::string> kRequestLines{"GET / HTTP/1.1",
                                                      "GET / HTTP/1.0",
                                                      "POST /a?b=[c]&d={e|f}\\g HTTP/1.1",
                                                      "OPTIONS * HTTP/1.1",
                                                      "GET http://b.example:80/c HTTP/1.1",
                                                      "CONNECT a:1 HTTP/1.1",
                                                      "X!Y /%zz HTTP/1.1",
                                                      "get / HTTP/1.1",
                                                      "GET /a#b HTTP/1.1",
                                                      "GET / HTTP/1.2",
                                                      "GET  / HTTP/1.1"};
  int accepted = 0;
  testing::check_property(20000, [&accepted] {
    const std::string host = *rc::gen::element<std::string>("Host: a\r\n", "Host: a\r\n", "");
    const std::string bytes = any_of(kRequestLines) + "\r\n" + host + any_lines() + "\r\n";
    HeaderRoom headers;
    RequestParser parser{headers};
    const HeadParse parse = parser.parse(bytes);
    if (parse.state != HeadParse::State::complete) return;
    ++accepted;
    RC_LOG() << bytes;
    RC_ASSERT(fixture::request_by_http_parser(bytes) ==
              fixture::as_http_parser_says_it(parser.head(), parse.head_bytes));
  });
  EXPECT_GT(accepted, 1000);
}

TEST(HttpParser, ReadsTheSameInEveryResponseThatWeAccept) {
  static const std::vector<std::string> kStatusLines{
      "HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 404 ",   "HTTP/1.1 999 Not  so\t\xe9",
      "HTTP/1.1 500 a",  "HTTP/1.1 099 a",  "HTTP/1.1 2000 a", "HTTP/1.2 200 OK"};
  int accepted = 0;
  testing::check_property(20000, [&accepted] {
    const std::string bytes = any_of(kStatusLines) + "\r\n" + any_lines() + "\r\n";
    HeaderRoom headers;
    ResponseParser parser{headers};
    const HeadParse parse = parser.parse(bytes);
    if (parse.state != HeadParse::State::complete) return;
    ++accepted;
    RC_LOG() << bytes;
    RC_ASSERT(fixture::response_by_http_parser(bytes) ==
              fixture::as_http_parser_says_it(parser.head(), parse.head_bytes));
  });
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace sluice::net
