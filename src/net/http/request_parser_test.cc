#include "net/http/request_parser.h"

#include "net/http/http_fixture.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::net {
namespace {

using State = HeadParse::State;
using Kind = BodyFraming::Kind;
using fixture::first_dependence_on_pieces;
using fixture::HeaderRoom;
using fixture::outcome_at_once;

// A parser with its headers, for one head that must be good.
struct Good {
  explicit Good(std::string text) : bytes(std::move(text)) {
    const HeadParse parse = parser.parse(bytes);
    EXPECT_EQ(parse.state, State::complete) << parse.fault.why << "\n" << bytes;
    head_bytes = parse.head_bytes;
    EXPECT_EQ(first_dependence_on_pieces<RequestParser>(bytes), std::string::npos) << bytes;
  }
  const RequestHead* operator->() const { return &parser.head(); }

  std::string bytes;
  HeaderRoom headers;
  RequestParser parser{headers};
  std::size_t head_bytes = 0;
};

std::string get(const std::string& lines) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n";
}

TEST(RequestParser, ReadsAllPartsOfAHead) {
  const Good head{
      "POST /v1/things?a=b HTTP/1.1\r\nHost: api.example.com:8080\r\nX-Empty:\r\nx-spaced: \t a  "
      "b\t "
      "\r\nContent-Length: 12\r\nX-Latin: caf\xe9\r\n\r\nbody"};
  EXPECT_EQ(head.head_bytes, head.bytes.size() - 4);
  EXPECT_EQ(head->method, "POST");
  EXPECT_EQ(head->target, "/v1/things?a=b");
  EXPECT_EQ(head->path_and_query, "/v1/things?a=b");
  EXPECT_EQ(head->host, "api.example.com:8080");
  EXPECT_EQ(head->minor_version, 1);
  EXPECT_EQ(head->body, (BodyFraming{Kind::length, 12}));
  EXPECT_TRUE(head->keep_alive);
  ASSERT_EQ(head->headers.size(), 5U);
  EXPECT_EQ(head->headers[1].name, "X-Empty");
  EXPECT_EQ(head->headers[1].value, "");
  EXPECT_EQ(head->headers[2].name, "x-spaced");
  EXPECT_EQ(head->headers[2].value, "a  b");
  EXPECT_EQ(head->headers[4].value, "caf\xe9");
}

TEST(RequestParser, ViewsPointIntoTheBytesThatWereGiven) {
  const Good head{get("X: y\r\n")};
  const auto is_inside = [&](std::string_view part) {
    return part.data() >= head.bytes.data() &&
           part.data() + part.size() <= head.bytes.data() + head.bytes.size();
  };
  EXPECT_TRUE(is_inside(head->method));
  EXPECT_TRUE(is_inside(head->target));
  EXPECT_TRUE(is_inside(head->host));
  for (const HeaderView& header : head->headers) {
    EXPECT_TRUE(is_inside(header.name));
    EXPECT_TRUE(is_inside(header.value));
  }
}

TEST(RequestParser, KnowsTheFourFormsOfTargets) {
  struct Row {
    const char* line;
    const char* path_and_query;
    const char* host;
  };
  for (const Row& row : {
           Row{"GET /a/b?c=[d]&e={f|g} HTTP/1.1", "/a/b?c=[d]&e={f|g}", "a"},
           Row{"GET // HTTP/1.1", "//", "a"},
           Row{"GET /http://b/ HTTP/1.1", "/http://b/", "a"},
           Row{"GET http://b.example:81/c?d HTTP/1.1", "/c?d", "b.example:81"},
           Row{"GET HTTPS://[::1]:443/ HTTP/1.1", "/", "[::1]:443"},
           Row{"GET http://b HTTP/1.1", "/", "b"},
           Row{"OPTIONS http://b HTTP/1.1", "*", "b"},
           Row{"OPTIONS http://b/ HTTP/1.1", "/", "b"},
           Row{"OPTIONS * HTTP/1.1", "*", "a"},
           Row{"OPTIONS /a HTTP/1.1", "/a", "a"},
           Row{"CONNECT b.example:443 HTTP/1.1", "b.example:443", "b.example:443"},
           Row{"M-SEARCH /a HTTP/1.1", "/a", "a"},
           Row{"get /a HTTP/1.1", "/a", "a"},
       }) {
    const Good head{std::string{row.line} + "\r\nHost: a\r\n\r\n"};
    EXPECT_EQ(head->path_and_query, row.path_and_query) << row.line;
    EXPECT_EQ(head->host, row.host) << row.line;
  }
}

TEST(RequestParser, TakesHostsOfAllKinds) {
  for (const char* const host : {"a", "A.Example", "a-b.c_d", "a.", "10.0.0.1", "10.0.0.1:65535",
                                 "a:0", "[::1]", "[2001:db8::1]:8080", "[::ffff:1.2.3.4]"}) {
    const Good head{"GET / HTTP/1.1\r\nHost: " + std::string{host} + "\r\n\r\n"};
    EXPECT_EQ(head->host, host);
  }
}

TEST(RequestParser, LetsHttp10DoWithoutHost) {
  const Good head{"GET / HTTP/1.0\r\n\r\n"};
  EXPECT_EQ(head->host, "");
  EXPECT_EQ(head->minor_version, 0);
  EXPECT_FALSE(head->keep_alive);
}

TEST(RequestParser, TellsHowLongTheBodyIs) {
  EXPECT_EQ(Good { get("") } -> body, BodyFraming{});
  EXPECT_EQ(Good { get("Content-Length: 0\r\n") } -> body, (BodyFraming{Kind::length, 0}));
  EXPECT_EQ(Good { get("content-LENGTH:\t7 \r\n") } -> body, (BodyFraming{Kind::length, 7}));
  EXPECT_EQ(
      Good { get("Content-Length: 9223372036854775807\r\n") } -> body,
      (BodyFraming{Kind::length, 9223372036854775807U}));
  EXPECT_EQ(Good { get("Transfer-Encoding: chunked\r\n") } -> body, (BodyFraming{Kind::chunked}));
  EXPECT_EQ(Good { get("TRANSFER-encoding:chunked\r\n") } -> body, (BodyFraming{Kind::chunked}));
}

// Programs behind CGI and its like read them as the names with dashes.
TEST(RequestParser, RefusesImitationsOfFraming) {
  for (const char* const line : {"Content_Length: 5", "Transfer_Encoding: chunked", "KEEP_ALIVE: 1",
                                 "Proxy_Connection: close"}) {
    EXPECT_EQ(outcome_at_once<RequestParser>(get(std::string{line} + "\r\n")),
              "400 a header of the connection, written with an underscore")
        << line;
  }
  EXPECT_EQ(Good { get("X_Mine: 1\r\nContent_Type: a\r\n") } -> headers.size(), 3U);
}

// Whatever its length: that it is no method is seen before the line ends.
TEST(RequestParser, SaysThatAMethodIsTooLong) {
  const std::string refused = "501 the method is too long";
  EXPECT_EQ(outcome_at_once<RequestParser>(std::string(33, 'M') + " / HTTP/1.1\r\nHost: a\r\n\r\n"),
            refused);
  EXPECT_EQ(outcome_at_once<RequestParser>(std::string(9000, 'M')), refused);
  EXPECT_EQ(
      outcome_at_once<RequestParser>(std::string(9000, 'M') + " / HTTP/1.1\r\nHost: a\r\n\r\n"),
      refused);
}

TEST(RequestParser, TellsWhetherTheConnectionStays) {
  EXPECT_TRUE(Good { get("") } -> keep_alive);
  EXPECT_TRUE(Good { get("Connection: keep-alive\r\n") } -> keep_alive);
  EXPECT_FALSE(Good { get("Connection: Close\r\n") } -> keep_alive);
  EXPECT_FALSE(Good { get("Connection: keep-alive, close\r\n") } -> keep_alive);
  EXPECT_FALSE(Good { get("Connection: keep-alive\r\nConnection: x,,close ,\r\n") } -> keep_alive);
  EXPECT_TRUE(Good { get("Connection: closed\r\nProxy-Connection: close\r\n") } -> keep_alive);
  EXPECT_TRUE(Good{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"} -> keep_alive);
  EXPECT_FALSE(Good{"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"} -> keep_alive);
}

TEST(RequestParser, ExpectsToBeToldToGoOnOnlyWithABodyToSend) {
  EXPECT_TRUE(Good { get("Expect: 100-Continue\r\nContent-Length: 1\r\n") } -> expects_continue);
  EXPECT_TRUE(Good { get("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n") }
              -> expects_continue);
  EXPECT_FALSE(Good { get("Expect: 100-continue\r\nContent-Length: 0\r\n") } -> expects_continue);
  EXPECT_FALSE(Good { get("Expect: 100-continue\r\n") } -> expects_continue);
  const Good older{"GET / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"};
  EXPECT_FALSE(older->expects_continue);
}

TEST(RequestParser, SwitchesProtocolsOnlyWhenConnectionSaysSo) {
  EXPECT_EQ(Good { get("Connection: Upgrade\r\nUpgrade: websocket\r\n") } -> upgrade, "websocket");
  EXPECT_EQ(Good { get("Upgrade: websocket\r\n") } -> upgrade, "");
  EXPECT_EQ(Good { get("Connection: upgrade\r\n") } -> upgrade, "");
  EXPECT_EQ(Good{"GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n"} -> upgrade, "");
}

TEST(RequestParser, MarksWhatIsNotPassedOn) {
  const Good head{
      get("Connection: close, x-mine, keep-alive, te\r\nTE: trailers, deflate\r\nX-Mine: 1\r\n"
          "Keep-Alive: 5\r\nProxy-Connection: a\r\nTrailer: b\r\nUpgrade: c\r\n"
          "Proxy-Authorization: d\r\nProxy-Authenticate: e\r\nHTTP2-Settings: f\r\n"
          "Expect: 100-continue\r\nAccept: */*\r\n")};
  const std::vector<std::string_view> passed{"X-Mine", "Accept"};
  std::vector<std::string_view> not_marked;
  for (std::size_t i = 0; i < head->headers.size(); ++i) {
    if (!head->restated.contains(i)) not_marked.push_back(head->headers[i].name);
  }
  EXPECT_EQ(not_marked, passed);
  EXPECT_TRUE(head->connection_names_headers);
  EXPECT_TRUE(head->accepts_trailers);
  const Good plain{get("Connection: close, upgrade, TE, http2-settings, keep-alive\r\n")};
  EXPECT_FALSE(plain->connection_names_headers);
}

TEST(RequestParser, LetsOneEmptyLinePassBeforeARequest) {
  const Good head{"\r\n" + get("")};
  EXPECT_EQ(head->method, "GET");
  EXPECT_EQ(head.head_bytes, head.bytes.size());
}

// ---- pieces -----------------------------------------------------------------------------------

TEST(RequestParser, IsCompleteAtTheLastByteAndNotBefore) {
  const std::string bytes = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(first_dependence_on_pieces<RequestParser>(bytes + "hello"), std::string::npos);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(outcome_at_once<RequestParser>(bytes.substr(0, size)), "need more") << size;
  }
}

TEST(RequestParser, BeginsAnewWhenTheBytesWereMoved) {
  const std::string first = get("X: y\r\n");
  const std::string second = get("X: y\r\n");  // the same elsewhere
  HeaderRoom headers;
  RequestParser parser{headers};
  EXPECT_EQ(parser.parse(std::string_view{first}.substr(0, 30)).state, State::need_more);
  EXPECT_EQ(parser.parse(second).state, State::complete);
  EXPECT_GE(parser.head().method.data(), second.data());
  EXPECT_LT(parser.head().method.data(), second.data() + second.size());
}

// What one request said must not be said by the next.
TEST(RequestParser, RemembersNothingOfTheRequestBefore) {
  std::string buffer =
      "POST http://b/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close, x\r\n"
      "TE: trailers\r\nExpect: 100-continue\r\n\r\n";
  HeaderRoom headers;
  RequestParser parser{headers};
  ASSERT_EQ(parser.parse(buffer).state, State::complete);
  EXPECT_EQ(parser.head().body.kind, Kind::chunked);
  const std::string next = "GET / HTTP/1.0\r\n\r\n";
  buffer.replace(0, next.size(), next);
  parser.reset();
  const std::string_view bytes = std::string_view{buffer}.substr(0, next.size());
  EXPECT_EQ(fixture::outcome(parser, bytes), outcome_at_once<RequestParser>(bytes));
  EXPECT_EQ(parser.head().host, "");
}

TEST(RequestParser, AnswersTheSameUntilItIsReset) {
  const std::string bytes = "GET / HTTP/3.0\r\n";
  HeaderRoom headers;
  RequestParser parser{headers};
  EXPECT_EQ(parser.parse(bytes).fault.status, 505);
  EXPECT_EQ(parser.parse(bytes).fault.status, 505);
}

// Otherwise a client that sends byte by byte would make us read a head of n bytes n times. That a
// byte is not looked at again shows when it is spoilt behind the parser's back.
TEST(RequestParser, LooksAtEachByteOnce) {
  std::string bytes = get("X: yyyy\r\nZ: " + std::string(40, 'z') + "\r\n");
  HeaderRoom headers;
  RequestParser parser{headers};
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    ASSERT_EQ(parser.parse(std::string_view{bytes}.substr(0, size)).state, State::need_more);
    const bool is_in_values = bytes[size - 1] == 'y' || bytes[size - 1] == 'z';
    if (is_in_values) bytes[size - 1] = '\0';
  }
  EXPECT_EQ(parser.parse(bytes).state, State::complete);
  EXPECT_EQ(outcome_at_once<RequestParser>(bytes), "400 a control character");
}

// ---- limits -----------------------------------------------------------------------------------

// At the limit it is good, one beyond it is not, and the answer comes as soon as it is certain.
TEST(RequestParser, BoundsTheRequestLine) {
  const std::string longest = "GET /" + std::string(100 - 16, 'a') + " HTTP/1.1\r\n";
  const HeadLimits exact{.start_line_bytes = longest.size()};
  const HeadLimits less{.start_line_bytes = longest.size() - 1};
  const std::string bytes = longest + "Host: a\r\n\r\n";
  const std::string refused = "414 the request line is too long";
  EXPECT_NE(outcome_at_once<RequestParser>(bytes, exact), refused);
  EXPECT_EQ(outcome_at_once<RequestParser>(bytes, less), refused);
  EXPECT_EQ(outcome_at_once<RequestParser>(longest.substr(0, less.start_line_bytes), less),
            refused);
  EXPECT_EQ(outcome_at_once<RequestParser>(longest.substr(0, less.start_line_bytes - 1), less),
            "need more");
  EXPECT_EQ(first_dependence_on_pieces<RequestParser>(bytes, exact), std::string::npos);
  EXPECT_EQ(first_dependence_on_pieces<RequestParser>(bytes, less), std::string::npos);
  EXPECT_EQ(first_dependence_on_pieces<RequestParser>("\r\n" + bytes, less), std::string::npos);
}

TEST(RequestParser, BoundsTheBytesOfHeaders) {
  const std::string line = "GET / HTTP/1.1\r\n";
  const std::string lines = "Host: a\r\nX: " + std::string(50, 'y') + "\r\n\r\n";
  const HeadLimits exact{.header_bytes = lines.size()};
  const HeadLimits less{.header_bytes = lines.size() - 1};
  const std::string refused = "431 the headers are too long";
  EXPECT_NE(outcome_at_once<RequestParser>(line + lines, exact), refused);
  EXPECT_EQ(outcome_at_once<RequestParser>(line + lines, less), refused);
  EXPECT_EQ(first_dependence_on_pieces<RequestParser>(line + lines, exact), std::string::npos);
  EXPECT_EQ(first_dependence_on_pieces<RequestParser>(line + lines, less), std::string::npos);
}

TEST(RequestParser, BoundsTheNumberOfHeaders) {
  const std::string refused = "431 too many headers";
  EXPECT_NE(outcome_at_once<RequestParser>(get("A: 1\r\nB: 2\r\n"), {.headers = 3}), refused);
  EXPECT_EQ(outcome_at_once<RequestParser>(get("A: 1\r\nB: 2\r\n"), {.headers = 2}), refused);
  std::string many;
  for (std::size_t i = 1; i < kHeadersMax; ++i) many += "A: 1\r\n";
  EXPECT_NE(outcome_at_once<RequestParser>(get(many), {.headers = 1000}), refused);
  EXPECT_EQ(outcome_at_once<RequestParser>(get(many + "A: 1\r\n"), {.headers = 1000}), refused);
}

TEST(RequestParser, BoundsTheOptionsOfAConnection) {
  std::string options = "close";
  for (int i = 1; i < 32; ++i) options += ",a";
  EXPECT_EQ(Good { get("Connection: " + options + "\r\n") } -> keep_alive, false);
  const std::string refused = "431 too many options in Connection";
  EXPECT_EQ(outcome_at_once<RequestParser>(get("Connection: " + options + ",b\r\n")), refused);
  EXPECT_EQ(outcome_at_once<RequestParser>(get("Connection: " + options + "\r\nConnection: b\r\n")),
            refused);
}

TEST(RequestParser, FillsNoMoreHeadersThanTheCallerHas) {
  std::array<HeaderView, 2> headers;
  RequestParser parser{headers};
  EXPECT_EQ(parser.parse(get("A: 1\r\nB: 2\r\n")).fault.status, 431);
  parser.reset();
  EXPECT_EQ(parser.parse(get("A: 1\r\n")).state, State::complete);
}

}  // namespace
}  // namespace sluice::net
