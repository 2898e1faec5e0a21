#include "net/http/head_writer.h"

#include "net/http/http_fixture.h"
#include "support/property.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::string_literals;
using fixture::HeaderRoom;
using Kind = BodyFraming::Kind;
using Persistence = Forwarding::Persistence;
using Room = std::array<char, 8192>;

template <class Write>
std::string written(const Write& write) {
  Room room;
  HeadWriter writer{room};
  write(writer);
  const Result<std::string_view> text = writer.finish();
  return text ? std::string{*text} : "failed: "s + text.error().where;
}

// What a proxy makes of a request.
std::string forwarded(const std::string& request, const Forwarding& how = {}) {
  HeaderRoom headers;
  RequestParser parser{headers};
  const HeadParse parse = parser.parse(request);
  EXPECT_EQ(parse.state, HeadParse::State::complete) << parse.fault.why;
  return written([&](HeadWriter& writer) { write_request(writer, parser.head(), how); });
}

std::string returned(const std::string& response, std::string_view method,
                     const Forwarding& how = {}) {
  HeaderRoom headers;
  ResponseParser parser{headers};
  parser.expect_answer_to(method);
  const HeadParse parse = parser.parse(response);
  EXPECT_EQ(parse.state, HeadParse::State::complete) << parse.fault.why;
  const ResponseHead& head = parser.head();
  return written([&](HeadWriter& writer) { write_response(writer, head, head.body, how); });
}

TEST(HeadWriter, WritesLinesOneByOne) {
  EXPECT_EQ(written([](HeadWriter& writer) {
              writer.request_line("GET", "/a?b");
              writer.header("Host", "c");
              writer.header("X-Empty", "");
              writer.header("X-Number", 18446744073709551615U);
              writer.framing({Kind::length, 0});
            }),
            "GET /a?b HTTP/1.1\r\nHost: c\r\nX-Empty: \r\nX-Number: 18446744073709551615\r\n"
            "Content-Length: 0\r\n\r\n");
  EXPECT_EQ(written([](HeadWriter& writer) {
              writer.status_line(429, "Too Many Requests");
              writer.framing({Kind::chunked});
              writer.framing({Kind::none});
              writer.framing({Kind::until_close});
            }),
            "HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(written([](HeadWriter& writer) {
              writer.last_chunk();
              writer.header("X-Sum", "1");
            }),
            "0\r\nX-Sum: 1\r\n\r\n");
}

// What the program knows is written as what it does not know: only the checks are the compiler's.
TEST(HeadWriter, WritesItsOwnHeadersAsAllOthers) {
  EXPECT_EQ(written([](HeadWriter& writer) {
              writer.status_line(429);
              writer.own_header("Content-Type", "a/b");
              writer.own_header("X-Empty", "");
              writer.own_header("Retry-After", 18446744073709551615U);
              writer.own_line("Cache-Control: no-store");
            }),
            written([](HeadWriter& writer) {
              writer.status_line(429, "Too Many Requests");
              writer.header("Content-Type", "a/b");
              writer.header("X-Empty", "");
              writer.header("Retry-After", 18446744073709551615U);
              writer.header("Cache-Control", "no-store");
            }));
  EXPECT_EQ(written([](HeadWriter& writer) { writer.status_line(499); }), "HTTP/1.1 499 \r\n\r\n");
}

// A header that became a line of its own would be a header of the attacker's choice.
TEST(HeadWriter, RefusesWhatWouldBeReadOtherwise) {
  for (const std::string& value :
       {"a\r\nB: c"s, "a\n"s, "\r"s, "a\0b"s, "\x7f"s, "\x1b"s, " a"s, "a "s, "\ta"s, " "s}) {
    EXPECT_EQ(written([&](HeadWriter& writer) { writer.header("X", value); }),
              "failed: not the value of a header");
    EXPECT_EQ(written([&](HeadWriter& writer) { writer.own_header("X", value); }),
              "failed: not the value of a header");
  }
  for (const std::string& name : {""s, "a b"s, "a:"s, "a\r\n"s, "a\0"s, "\xc3\xa9"s, " a"s}) {
    EXPECT_EQ(written([&](HeadWriter& writer) { writer.header(name, "x"); }),
              "failed: not the name of a header");
    EXPECT_EQ(written([&](HeadWriter& writer) { writer.header(name, 1); }),
              "failed: not the name of a header");
    EXPECT_EQ(written([&](HeadWriter& writer) { writer.request_line(name, "/"); }),
              "failed: not a method");
  }
  for (const std::string& target : {""s, "/a b"s, "/\r\n"s, "/a#b"s, "/\xff"s, "/\0"s, "/\t"s}) {
    EXPECT_EQ(written([&](HeadWriter& writer) { writer.request_line("GET", target); }),
              "failed: not a target");
  }
  EXPECT_EQ(written([](HeadWriter& writer) { writer.status_line(200, "a\nb"); }),
            "failed: not a reason");
  EXPECT_EQ(written([](HeadWriter& writer) { writer.status_line(99, ""); }),
            "failed: not a status");
  EXPECT_EQ(written([](HeadWriter& writer) { writer.status_line(1000, ""); }),
            "failed: not a status");
}

TEST(HeadWriter, SaysWhenThereIsNoRoom) {
  const std::string whole = "GET / HTTP/1.1\r\nA: b\r\nC: 5\r\nD: e\r\nF: 6\r\nG: h\r\n\r\n";
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    std::vector<char> room(size + 1, '!');
    HeadWriter writer{std::span{room}.first(size)};
    writer.request_line("GET", "/");
    writer.header("A", "b");
    writer.header("C", 5);
    writer.own_header("D", "e");
    writer.own_header("F", 6);
    writer.own_line("G: h");
    const Result<std::string_view> text = writer.finish();
    ASSERT_EQ(text.has_value(), size == whole.size()) << size;
    if (!text) {
      EXPECT_EQ(text.error().code, Errc::unsupported);
    }
    EXPECT_EQ(room.back(), '!');
  }
}

TEST(WriteRequest, StatesAnewWhatIsForOneConnection) {
  EXPECT_EQ(
      forwarded(
          "POST http://b.example/c?d HTTP/1.1\r\nHost: a\r\nConnection: close, X-Mine, cookie\r\n"
          "X-Mine: 1\r\nKeep-Alive: 5\r\nCookie: e\r\ntransfer-encoding: chunked\r\n"
          "X-Forwarded-For: 1.2.3.4\r\nProxy-Authorization: f\r\nUpgrade: g\r\n\r\n"),
      "POST /c?d HTTP/1.1\r\nHost: b.example\r\nTransfer-Encoding: chunked\r\nCookie: e\r\n"
      "X-Forwarded-For: 1.2.3.4\r\n\r\n");
  EXPECT_EQ(forwarded("OPTIONS * HTTP/1.1\r\nHost: a\r\nTE: trailers;q=0.5\r\n\r\n"),
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(forwarded("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers, gzip\r\nConnection: TE\r\n\r\n"),
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nTE: trailers\r\n\r\n");
}

TEST(WriteRequest, PassesOnWhatTheProxyDecides) {
  const std::string upgrade =
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
  EXPECT_EQ(forwarded(upgrade), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(
      forwarded(upgrade, {.persistence = Persistence::close, .upgrade = true}),
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n");
  const std::string expecting =
      "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(forwarded(expecting), "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(forwarded(expecting, {.expect_continue = true}),
            "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(forwarded("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: upgrade\r\n"
                      "Upgrade: b\r\n\r\n",
                      {.persistence = Persistence::keep_alive, .upgrade = true}),
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade, TE\r\nUpgrade: b\r\n"
            "TE: trailers\r\n\r\n");
}

TEST(WriteResponse, KeepsWhatHeadIsTold) {
  const std::string lengthy = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nA: b\r\n\r\n";
  EXPECT_EQ(returned(lengthy, "GET"), lengthy);
  EXPECT_EQ(returned(lengthy, "HEAD"), lengthy);
  const std::string unchanged = "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n";
  EXPECT_EQ(returned(unchanged, "GET"), unchanged);
  EXPECT_EQ(returned("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "GET"),
            "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(returned("HTTP/1.0 200\r\nConnection: x\r\nX: y\r\n\r\n", "GET",
                     {.persistence = Persistence::close}),
            "HTTP/1.1 200 \r\nConnection: close\r\n\r\n");
}

TEST(ChunkHead, IsTheSizeInHexadecimal) {
  std::array<char, kChunkHeadBytesMax> room;
  EXPECT_EQ(format_chunk_head(1, room), "1\r\n");
  EXPECT_EQ(format_chunk_head(0xabc, room), "abc\r\n");
  EXPECT_EQ(format_chunk_head(~std::uint64_t{0}, room), "ffffffffffffffff\r\n");
}

// ---- any head -----------------------------------------------------------------------------------

using Lines = std::vector<std::pair<std::string, std::string>>;

rc::Gen<std::string> value_text() {
  const auto inner = rc::gen::container<std::string>(
      rc::gen::element('a', 'Z', '0', ' ', '\t', ':', ',', '"', '\\', '\x80', '\xff', '~'));
  return rc::gen::map(inner, [](const std::string& text) { return std::string{trimmed(text)}; });
}

rc::Gen<std::string> token_text(const std::string& prefix) {
  const auto inner = rc::gen::container<std::string>(
      rc::gen::element('a', 'Z', '9', '-', '_', '.', '!', '~', '|'));
  return rc::gen::map(inner, [prefix](const std::string& text) { return prefix + text; });
}

Lines any_lines() {
  return *rc::gen::resize(20,
                          rc::gen::container<Lines>(rc::gen::pair(token_text("x"), value_text())));
}

BodyFraming any_body(bool is_response) {
  const auto length = *rc::gen::inRange<std::uint64_t>(0, 1ULL << 62U);
  switch (*rc::gen::inRange(0, 3)) {
    case 0: return {.kind = is_response ? Kind::until_close : Kind::none};
    case 1: return {.kind = Kind::length, .length = length};
    default: return {.kind = Kind::chunked};
  }
}

std::vector<HeaderView> views_of(const Lines& lines) {
  std::vector<HeaderView> views;
  for (const auto& [name, value] : lines) views.push_back({name, value});
  return views;
}

// Whatever a head says, it says after it was written and read.
TEST(HeadWriter, WritesRequestsThatReadTheSame) {
  testing::check_property(1000, [] {
    const Lines lines = any_lines();
    const std::vector<HeaderView> headers = views_of(lines);
    const std::string method = *token_text("M");
    const std::string target = "/" + *rc::gen::container<std::string>(rc::gen::element(
                                         'a', '?', '%', '[', '|', '=', '&', ';', '\\', '~', '!'));
    RequestHead head;
    head.method = std::string_view{method}.substr(0, 32);
    head.path_and_query = target;
    head.host = *rc::gen::element<std::string_view>("a", "a.example:80", "[::1]:8080", "1.2.3.4");
    head.headers = headers;
    head.body = any_body(false);
    const bool has_body = head.body.kind == Kind::chunked || head.body.length > 0;
    head.expects_continue = has_body && *rc::gen::arbitrary<bool>();
    head.accepts_trailers = *rc::gen::arbitrary<bool>();
    head.upgrade = *rc::gen::element<std::string_view>("", "websocket");
    const std::string text = written([&](HeadWriter& writer) {
      write_request(writer, head, {.upgrade = true, .expect_continue = true});
    });
    HeaderRoom room;
    RequestParser parser{room};
    const HeadParse parse = parser.parse(text);
    RC_ASSERT(fixture::describe(parse) == "complete at " + std::to_string(text.size()));
    RC_ASSERT(fixture::describe_meaning(parser.head()) == fixture::describe_meaning(head));
  });
}

TEST(HeadWriter, WritesResponsesThatReadTheSame) {
  testing::check_property(1000, [] {
    const Lines lines = any_lines();
    const std::vector<HeaderView> headers = views_of(lines);
    const std::string reason = *value_text();
    ResponseHead head;
    head.status = *rc::gen::suchThat(rc::gen::inRange<std::uint16_t>(200, 1000),
                                     [](std::uint16_t s) { return s != 204 && s != 304; });
    head.reason = reason;
    head.headers = headers;
    head.body = any_body(true);
    const std::string text =
        written([&](HeadWriter& writer) { write_response(writer, head, head.body); });
    HeaderRoom room;
    ResponseParser parser{room};
    const HeadParse parse = parser.parse(text);
    RC_ASSERT(fixture::describe(parse) == "complete at " + std::to_string(text.size()));
    RC_ASSERT(fixture::describe_meaning(parser.head()) == fixture::describe_meaning(head));
  });
}

// Whatever bytes go in, either the head fails, or exactly these headers are read.
TEST(HeadWriter, NeverWritesALineThatWasNotMeant) {
  testing::check_property(2000, [] {
    const auto bytes = rc::gen::container<std::string>(rc::gen::element(
        'a', ' ', '\t', ':', '\r', '\n', '\0', '\x7f', '\x80', '-', '1', 'H', '\x01'));
    const std::string name = *bytes;
    const std::string value = *bytes;
    const std::string text = written([&](HeadWriter& writer) {
      writer.request_line("GET", "/");
      writer.header("Host", "a");
      writer.header(name, value);
    });
    if (text.starts_with("failed")) return;
    HeaderRoom room;
    RequestParser parser{room};
    RC_ASSERT(parser.parse(text).state == HeadParse::State::complete);
    RC_ASSERT(parser.head().headers.size() == 2U);
    RC_ASSERT(parser.head().headers[1].name == name);
    RC_ASSERT(parser.head().headers[1].value == value);
  });
}

}  // namespace
}  // namespace sluice::net
