#include "net/http/response_parser.h"

#include "net/http/http_fixture.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::string_literals;
using fixture::first_dependence_on_pieces;
using fixture::HeaderRoom;
using fixture::outcome_at_once;
using State = HeadParse::State;
using Kind = BodyFraming::Kind;

// A parser with its headers, for one head that must be good.
struct Good {
  explicit Good(std::string text, std::string_view method = "GET") : bytes(std::move(text)) {
    parser.expect_answer_to(method);
    const HeadParse parse = parser.parse(bytes);
    EXPECT_EQ(parse.state, State::complete) << parse.fault.why << "\n" << bytes;
    head_bytes = parse.head_bytes;
    EXPECT_EQ(first_dependence_on_pieces<ResponseParser>(bytes), std::string::npos) << bytes;
  }
  const ResponseHead* operator->() const { return &parser.head(); }

  std::string bytes;
  HeaderRoom headers;
  ResponseParser parser{headers};
  std::size_t head_bytes = 0;
};

std::string answer(const std::string& status, const std::string& lines) {
  return "HTTP/1.1 " + status + "\r\n" + lines + "\r\n";
}

TEST(ResponseParser, ReadsAllPartsOfAHead) {
  const Good head{answer("404 Not  Found\t\xe9", "Server: x\r\nContent-Length: 3\r\n") + "abc"};
  EXPECT_EQ(head.head_bytes, head.bytes.size() - 3);
  EXPECT_EQ(head->status, 404);
  EXPECT_EQ(head->reason, "Not  Found\t\xe9");
  EXPECT_EQ(head->minor_version, 1);
  EXPECT_EQ(head->body, (BodyFraming{Kind::length, 3}));
  EXPECT_EQ(head->declared_length, 3U);
  ASSERT_EQ(head->headers.size(), 2U);
  EXPECT_EQ(head->headers[0].name, "Server");
  EXPECT_EQ(head->headers[0].value, "x");
}

TEST(ResponseParser, NeedsNoReason) {
  EXPECT_EQ(Good { answer("200 ", "") } -> reason, "");
  EXPECT_EQ(Good { answer("200", "") } -> reason, "");
  EXPECT_EQ(Good { answer("999", "") } -> status, 999);
}

TEST(ResponseParser, TellsHowLongTheBodyIs) {
  EXPECT_EQ(Good { answer("200 OK", "") } -> body, (BodyFraming{Kind::until_close}));
  EXPECT_EQ(
      Good { answer("200 OK", "Content-Length: 0\r\n") } -> body, (BodyFraming{Kind::length, 0}));
  EXPECT_EQ(
      Good { answer("200 OK", "Transfer-Encoding: Chunked \r\n") } -> body,
      (BodyFraming{Kind::chunked}));
  EXPECT_EQ(Good{"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"} -> body,
            (BodyFraming{Kind::length, 5}));
}

// Whatever their lines say, these end with their head: a reader that waited for a body would take
// the next answer for it.
TEST(ResponseParser, KnowsWhichAnswersHaveNoBody) {
  const std::string lengthy = "Content-Length: 5\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  for (const std::string& lines : {""s, lengthy, chunked}) {
    EXPECT_EQ((Good{answer("200 OK", lines), "HEAD"} -> body), BodyFraming{}) << lines;
    EXPECT_EQ(Good { answer("304 Not Modified", lines) } -> body, BodyFraming{}) << lines;
  }
  EXPECT_EQ((Good{answer("200 OK", lengthy), "HEAD"} -> declared_length), 5U);
  EXPECT_EQ(Good { answer("304 Not Modified", lengthy) } -> declared_length, 5U);
  EXPECT_EQ(Good { answer("204 No Content", "") } -> body, BodyFraming{});
  EXPECT_EQ(Good { answer("204 No Content", "Content-Length: 0\r\n") } -> body, BodyFraming{});
  EXPECT_EQ(Good { answer("100 Continue", "") } -> body, BodyFraming{});
  EXPECT_EQ(Good { answer("103 Early Hints", "Link: </a>\r\n") } -> body, BodyFraming{});
}

TEST(ResponseParser, TellsWhetherTheConnectionStays) {
  const std::string lengthy = "Content-Length: 5\r\n";
  EXPECT_TRUE(Good { answer("200 OK", lengthy) } -> keep_alive);
  EXPECT_FALSE(Good { answer("200 OK", lengthy + "Connection: close\r\n") } -> keep_alive);
  EXPECT_FALSE(Good { answer("200 OK", "") } -> keep_alive);
  EXPECT_FALSE(Good{"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"} -> keep_alive);
  EXPECT_TRUE(Good{"HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n"}
              -> keep_alive);
}

TEST(ResponseParser, AgreesToSwitchProtocols) {
  const Good head{
      answer("101 Switching Protocols", "Connection: Upgrade\r\nUpgrade: websocket\r\n")};
  EXPECT_EQ(head->upgrade, "websocket");
  EXPECT_EQ(head->body, BodyFraming{});
}

// They mean something in requests alone; here they are headers like any other.
TEST(ResponseParser, PassesHostAndExpectOn) {
  const Good head{answer("200 OK", "Host: not a host\r\nHost: b\r\nExpect: x\r\n")};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(head->restated.contains(i));
}

TEST(ResponseParser, ReadsOneHeadAfterAnotherInAnswerToOneRequest) {
  const std::string bytes =
      answer("103 Early Hints", "") + answer("200 OK", "Content-Length: 9\r\n");
  HeaderRoom headers;
  ResponseParser parser{headers};
  parser.expect_answer_to("HEAD");
  const HeadParse hints = parser.parse(bytes);
  ASSERT_EQ(hints.state, State::complete);
  EXPECT_EQ(parser.head().status, 103);
  parser.reset();
  ASSERT_EQ(parser.parse(std::string_view{bytes}.substr(hints.head_bytes)).state, State::complete);
  EXPECT_EQ(parser.head().status, 200);
  EXPECT_EQ(parser.head().body, BodyFraming{});
  EXPECT_EQ(parser.head().declared_length, 9U);
}

// What one answer said must not be said by the next.
TEST(ResponseParser, RemembersNothingOfTheAnswerBefore) {
  HeaderRoom headers;
  ResponseParser parser{headers};
  parser.expect_answer_to("GET");
  ASSERT_EQ(parser.parse(answer("200 OK", "Content-Length: 9\r\nConnection: close\r\n")).state,
            State::complete);
  const std::string next = answer("200 OK", "Transfer-Encoding: chunked\r\n");
  parser.expect_answer_to("GET");
  EXPECT_EQ(fixture::outcome(parser, next), outcome_at_once<ResponseParser>(next));
  EXPECT_FALSE(parser.head().declared_length);
}

TEST(ResponseParser, RefusesWhatTwoReadersCouldReadDifferently) {
  const std::string lines = "502 a status that has no body announces one";
  const std::string both = "502 both Transfer-Encoding and Content-Length";
  const std::string begin = "502 the response does not begin with a version and a status";
  const std::string version = "502 a version other than HTTP/1.0 and HTTP/1.1";
  const std::string status = "502 the status is not a number of three digits";
  const std::string lengthy = "Content-Length: 5\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  const std::vector<std::pair<std::string, std::string>> vectors{
      {answer("200 OK", lengthy + chunked), both},
      {answer("304 Not Modified", lengthy + chunked), both},
      {answer("200 OK", lengthy + lengthy), "502 more than one Content-Length"},
      {answer("200 OK", lengthy + "Content-Length: 6\r\n"), "502 more than one Content-Length"},
      {answer("200 OK", "Content-Length: 5, 5\r\n"), "502 Content-Length is not a plain number"},
      {answer("304 Not Modified", "Content-Length: -1\r\n"),
       "502 Content-Length is not a plain number"},
      {answer("200 OK", "Transfer-Encoding: gzip\r\n"), "502 Transfer-Encoding is not chunked"},
      {answer("200 OK", "Transfer-Encoding: chunked, gzip\r\n"),
       "502 Transfer-Encoding is not chunked"},
      {answer("200 OK", "Transfer-Encoding: gzip, chunked\r\n"),
       "502 a transfer coding other than chunked"},
      {answer("200 OK", chunked + chunked), "502 more than one Transfer-Encoding"},
      {"HTTP/1.0 200 OK\r\n" + chunked + "\r\n", "502 Transfer-Encoding in HTTP/1.0"},
      {answer("204 No Content", lengthy), lines},
      {answer("204 No Content", chunked), lines},
      {answer("100 Continue", lengthy), lines},
      {answer("100 Continue", "Content-Length: 0\r\n"), lines},
      {answer("101 Switching Protocols", chunked), lines},
      {answer("199 ", lengthy), lines},
      {answer("20 OK", ""), status},
      {answer("099 OK", ""), status},
      {answer("2000 OK", ""), status},
      {answer("2x0 OK", ""), status},
      {answer("-20 OK", ""), status},
      {answer("200\tOK", ""), status},
      {answer(" 200 OK", ""), status},
      {"HTTP/1.1 20\r\n\r\n", begin},
      {"HTTP/1.1\r\n\r\n", begin},
      {"\r\nHTTP/1.1 200 OK\r\n\r\n", begin},
      {"ICY 200 OK here\r\n\r\n", begin},
      {"HTTP/2.0 200 OK\r\n\r\n", version},
      {"HTTP/1.2 200 OK\r\n\r\n", version},
      {"HTTP/1.1  200 OK\r\n\r\n", status},
      {"HTTP/1.1\t200 OK\r\n\r\n", version},
      {"HTTP/1.1 200 OK\nX: y\r\n\r\n", "502 a line feed without a carriage return"},
      {answer("200 O\rK", ""), "502 a carriage return without a line feed"},
      {answer("200 O\0K"s, ""), "502 a control character"},
      {answer("200 OK", "X: y\r\n z\r\n"), "502 a header line that continues the one before"},
      {answer("200 OK", "X : y\r\n"), "502 a space in the name of a header"},
      {answer("200 OK", "X: \0\r\n"s), "502 a control character"},
  };
  for (const auto& [bytes, expected] : vectors) {
    EXPECT_EQ(outcome_at_once<ResponseParser>(bytes), expected) << bytes;
    EXPECT_EQ(first_dependence_on_pieces<ResponseParser>(bytes), std::string::npos) << bytes;
  }
}

TEST(ResponseParser, BoundsWhatItReads) {
  const std::string bytes = answer("200 OK", "A: 1\r\nB: 2\r\n");
  EXPECT_EQ(outcome_at_once<ResponseParser>(bytes, {.start_line_bytes = 16}),
            "502 the status line is too long");
  EXPECT_EQ(outcome_at_once<ResponseParser>(bytes, {.header_bytes = 13}),
            "502 the headers are too long");
  EXPECT_EQ(outcome_at_once<ResponseParser>(bytes, {.headers = 1}), "502 too many headers");
  EXPECT_EQ(outcome_at_once<ResponseParser>(
                bytes, {.start_line_bytes = 17, .header_bytes = 14, .headers = 2}),
            outcome_at_once<ResponseParser>(bytes));
}

}  // namespace
}  // namespace sluice::net
