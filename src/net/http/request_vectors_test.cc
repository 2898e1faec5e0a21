// Requests that a gateway must refuse, each a row: what it is, its bytes, the answer. Packaged
// parsers accept many of them. Every row is also sent split at every byte.

#include "net/http/http_fixture.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::string_literals;
using fixture::first_dependence_on_pieces;
using fixture::outcome_at_once;

struct Vector {
  const char* what;
  std::string bytes;
  std::string answer;
};

const std::string kHost = "Host: a\r\n";

std::string get(const std::string& lines) { return "GET / HTTP/1.1\r\n" + kHost + lines + "\r\n"; }
std::string post(const std::string& lines) {
  return "POST / HTTP/1.1\r\n" + kHost + lines + "\r\n";
}

void expect_answers(const std::vector<Vector>& vectors) {
  for (const Vector& one : vectors) {
    EXPECT_EQ(outcome_at_once<RequestParser>(one.bytes), one.answer) << one.what;
    EXPECT_EQ(first_dependence_on_pieces<RequestParser>(one.bytes), std::string::npos) << one.what;
  }
}

TEST(RequestVectors, OfLengthsAreRefused) {
  const std::string malformed = "400 Content-Length is not a plain number";
  const std::string repeated = "400 more than one Content-Length";
  expect_answers({
      {"two lengths that differ", post("Content-Length: 1\r\nContent-Length: 2\r\n"), repeated},
      {"two lengths that agree", post("Content-Length: 1\r\nContent-Length: 1\r\n"), repeated},
      {"two, in other letters", post("content-length: 1\r\nCONTENT-LENGTH: 1\r\n"), repeated},
      {"a list of equal lengths", post("Content-Length: 1, 1\r\n"), malformed},
      {"a list of lengths", post("Content-Length: 1,2\r\n"), malformed},
      {"a plus", post("Content-Length: +1\r\n"), malformed},
      {"a minus", post("Content-Length: -1\r\n"), malformed},
      {"minus zero", post("Content-Length: -0\r\n"), malformed},
      {"hexadecimal", post("Content-Length: 0x10\r\n"), malformed},
      {"hexadecimal digits", post("Content-Length: a\r\n"), malformed},
      {"octal", post("Content-Length: 010\r\n"), malformed},
      {"two zeros", post("Content-Length: 00\r\n"), malformed},
      {"a fraction", post("Content-Length: 1.0\r\n"), malformed},
      {"an exponent", post("Content-Length: 1e1\r\n"), malformed},
      {"a space inside", post("Content-Length: 1 0\r\n"), malformed},
      {"a tab inside", post("Content-Length: 1\t0\r\n"), malformed},
      {"an underscore", post("Content-Length: 1_000\r\n"), malformed},
      {"nothing", post("Content-Length: \r\n"), malformed},
      {"nothing at all", post("Content-Length:\r\n"), malformed},
      {"quotes", post("Content-Length: \"5\"\r\n"), malformed},
      {"a comma behind it", post("Content-Length: 5,\r\n"), malformed},
      {"a semicolon behind it", post("Content-Length: 5;\r\n"), malformed},
      {"2^63", post("Content-Length: 9223372036854775808\r\n"), malformed},
      {"2^64", post("Content-Length: 18446744073709551616\r\n"), malformed},
      {"more than any number", post("Content-Length: " + std::string(400, '9') + "\r\n"),
       malformed},
      {"digits of another script", post("Content-Length: \xd9\xa1\r\n"), malformed},
  });
}

TEST(RequestVectors, OfCodingsAreRefused) {
  const std::string both = "400 both Transfer-Encoding and Content-Length";
  const std::string other = "400 Transfer-Encoding is not chunked";
  const std::string unsupported = "501 a transfer coding other than chunked";
  const auto te = [](const std::string& value) {
    return post("Transfer-Encoding:" + value + "\r\n");
  };
  expect_answers({
      {"length, then coding", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), both},
      {"coding, then length", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), both},
      {"length 0 and coding", post("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"), both},
      {"length and another coding",
       post("Content-Length: 0\r\nTransfer-Encoding: gzip, chunked\r\n"), both},
      {"xchunked", te(" xchunked"), other},
      {"chunkedx", te(" chunkedx"), other},
      {"identity", te(" identity"), other},
      {"gzip alone", te(" gzip"), other},
      {"chunked, identity", te(" chunked, identity"), other},
      {"chunked, gzip", te(" chunked, gzip"), other},
      {"chunked, chunked", te(" chunked, chunked"), other},
      {"chunked,chunked", te(" chunked,chunked"), other},
      {"capitals", te(" Chunked"), other},
      {"all capitals", te(" CHUNKED"), other},
      {"a tab before", te("\tchunked"), other},
      {"a space and a tab before", te(" \tchunked"), other},
      {"a tab behind", te(" chunked\t"), other},
      {"a space behind", te(" chunked "), other},
      {"a comma behind", te(" chunked,"), other},
      {"a comma before", te(" ,chunked"), other},
      {"a parameter", te(" chunked;q=1"), other},
      {"quotes", te(" \"chunked\""), other},
      {"nothing", te(" "), other},
      {"nothing at all", te(""), other},
      {"a letter that is not",
       te(" chun\xe2\x84\xaa"
          "ed"),
       other},
      {"a vertical tab before", te(" \vchunked"), "400 a control character"},
      {"a form feed behind", te(" chunked\f"), "400 a control character"},
      {"two lines", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
       "400 more than one Transfer-Encoding"},
      {"two lines, the second of which ends it",
       post("Transfer-Encoding: gzip, chunked\r\nTransfer-Encoding: chunked\r\n"),
       "400 more than one Transfer-Encoding"},
      {"two lines, the second other",
       post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
       "400 more than one Transfer-Encoding"},
      {"gzip, chunked", te(" gzip, chunked"), unsupported},
      {"in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
       "400 Transfer-Encoding in HTTP/1.0"},
      {"another in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
       "400 Transfer-Encoding in HTTP/1.0"},
      {"a space before the colon", post("Transfer-Encoding : chunked\r\n"),
       "400 a space in the name of a header"},
      {"a tab before the colon", post("Transfer-Encoding\t: chunked\r\n"),
       "400 a space in the name of a header"},
      {"folded", te("\r\n chunked"), "400 Transfer-Encoding is not chunked"},
      {"folded behind another", post("X: y\r\n Transfer-Encoding: chunked\r\n"),
       "400 a header line that continues the one before"},
      {"in a value, by a line feed", post("X: y\nTransfer-Encoding: chunked\r\n"),
       "400 a line feed without a carriage return"},
      {"in a value, by a carriage return", post("X: y\rTransfer-Encoding: chunked\r\n"),
       "400 a carriage return without a line feed"},
  });
}

TEST(RequestVectors, OfLineEndsAreRefused) {
  const std::string feed = "400 a line feed without a carriage return";
  const std::string carriage = "400 a carriage return without a line feed";
  expect_answers({
      {"line feeds alone", "GET / HTTP/1.1\nHost: a\n\n", feed},
      {"the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", feed},
      {"a header", "GET / HTTP/1.1\r\nHost: a\n\r\n", feed},
      {"the empty line", "GET / HTTP/1.1\r\nHost: a\r\n\n", feed},
      {"carriage returns alone", "GET / HTTP/1.1\rHost: a\r\r", carriage},
      {"a carriage return twice", "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", carriage},
      {"twice behind a header", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", carriage},
      {"twice in the empty line", "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n", carriage},
      {"in a name", get("X\rY: z\r\n"), carriage},
      {"in a value", get("X: y\rz\r\n"), carriage},
      {"line feed, then carriage return", "GET / HTTP/1.1\n\rHost: a\n\r\n\r", feed},
      {"a line feed first", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", feed},
      {"two empty lines first", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
       "400 the request line does not begin with a method"},
  });
}

TEST(RequestVectors, OfHeaderLinesAreRefused) {
  const std::string folded = "400 a header line that continues the one before";
  const std::string space = "400 a space in the name of a header";
  const std::string character = "400 a character that may not stand in the name of a header";
  const std::string control = "400 a control character";
  expect_answers({
      {"folded with a space", get("X: y\r\n z\r\n"), folded},
      {"folded with a tab", get("X: y\r\n\tz\r\n"), folded},
      {"folded before the first", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", folded},
      {"a line of spaces", get("   \r\n"), folded},
      {"a space before the colon", get("X : y\r\n"), space},
      {"a tab before the colon", get("X\t: y\r\n"), space},
      {"a space in a name", get("X Y: z\r\n"), space},
      {"a space before the colon of Host", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", space},
      {"no name", get(": y\r\n"), "400 a header without a name"},
      {"only a colon", get(":\r\n"), "400 a header without a name"},
      {"no colon", get("X\r\n"), "400 a header without a colon"},
      {"a long line without a colon", get(std::string(100, 'x') + "\r\n"),
       "400 a header without a colon"},
      {"a slash in a name", get("X/Y: z\r\n"), character},
      {"a bracket first", get("(X: z\r\n"), character},
      {"quotes in a name", get("\"X\": z\r\n"), character},
      {"an at sign behind 16 letters", get("abcdefghijklmnop@: z\r\n"), character},
      {"UTF-8 in a name", get("X\xc3\xa9: z\r\n"), character},
      {"a byte of 0x80 in a name", get("X\x80: z\r\n"), character},
      {"NUL in a name", get("X\0Y: z\r\n"s), control},
      {"NUL in a value", get("X: y\0z\r\n"s), control},
      {"NUL at the end of a value", get("X: y\0\r\n"s), control},
      {"a control character in a value", get("X: \x01\r\n"), control},
      {"escape in a value", get("X: \x1b[31m\r\n"), control},
      {"delete in a value", get("X: \x7f\r\n"), control},
      {"a vertical tab before the colon", get("X\v: z\r\n"), control},
      {"Connection that is no list of tokens", get("Connection: a b\r\n"),
       "400 Connection is malformed"},
      {"Proxy-Connection that is no list of tokens", get("Proxy-Connection: a b\r\n"),
       "400 Proxy-Connection is malformed"},
      {"two Upgrades", get("Connection: upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n"),
       "400 more than one Upgrade"},
  });
}

TEST(RequestVectors, OfHostsAreRefused) {
  const std::string malformed = "400 Host is malformed";
  std::vector<Vector> vectors{
      {"none", "GET / HTTP/1.1\r\n\r\n", "400 no Host"},
      {"none, but others", "GET / HTTP/1.1\r\nX-Host: a\r\nHosts: a\r\n\r\n", "400 no Host"},
      {"none with an absolute target", "GET http://a/ HTTP/1.1\r\n\r\n", "400 no Host"},
      {"two that differ", get("Host: b\r\n"), "400 more than one Host"},
      {"two that agree", get("Host: a\r\n"), "400 more than one Host"},
      {"two in other letters", get("hOST: a\r\n"), "400 more than one Host"},
      {"two in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", "400 more than one Host"},
      {"malformed in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a b\r\n\r\n", malformed},
  };
  for (const char* const host :
       {"",         "a b",   "a,b",       "a/b",          "a/",
        "http://a", "a?b",   "a#b",       "user@a",       "user:pw@a",
        "a@b",      "a:",    ":80",       "a:b",          "a:80a",
        "a:-1",     "a:+1",  "a:65536",   "a:000080",     "a:80:80",
        "[::1",     "::1",   "[::1]x",    "[::1]:",       "[::1]:x",
        "[]",       "[a]",   "[1.2.3.4]", "[::1%25eth0]", "a\\b",
        "a%00",     "a%2eb", "<a>",       "\"a\"",        "\xc3\xa9.example",
        "a;b",      "a\tb"}) {
    vectors.push_back(
        {host, "GET / HTTP/1.1\r\nHost: " + std::string{host} + "\r\n\r\n", malformed});
  }
  expect_answers(vectors);
}

TEST(RequestVectors, OfRequestLinesAreRefused) {
  const std::string method = "400 the request line does not begin with a method";
  const std::string character = "400 a character that may not stand in a target";
  const std::string no_version = "400 the request line has no version";
  const std::string bad_version = "400 the request line does not end in a version";
  const std::string version = "505 a version other than HTTP/1.0 and HTTP/1.1";
  const std::string no_target = "400 the request line has no target";
  const std::string neither = "400 the target is neither a path nor an address of http";
  const std::string bad_host = "400 the host in the target is malformed";
  const std::string capitals = "501 HEAD, CONNECT and TRACE are written in capitals";
  const auto row = [](const char* what, const std::string& line, const std::string& answer) {
    return Vector{what, line + "\r\nHost: a\r\n\r\n", answer};
  };
  expect_answers({
      row("HTTP/0.9", "GET /", no_version),
      row("a space and no version", "GET / ", bad_version),
      row("HTTP/0.9 by name", "GET / HTTP/0.9", version),
      row("HTTP/1.2", "GET / HTTP/1.2", version),
      row("HTTP/1.9", "GET / HTTP/1.9", version),
      row("HTTP/2.0", "GET / HTTP/2.0", version),
      row("the preface of HTTP/2", "PRI * HTTP/2.0", version),
      row("HTTP/2", "GET / HTTP/2", bad_version),
      row("HTTP/11.1", "GET / HTTP/11.1", bad_version),
      row("HTTP/1.10", "GET / HTTP/1.10", bad_version),
      row("HTTP/01.1", "GET / HTTP/01.1", bad_version),
      row("HTTP/1,1", "GET / HTTP/1,1", bad_version),
      row("http/1.1", "GET / http/1.1", bad_version),
      row("HTTPS/1.1", "GET / HTTPS/1.1", bad_version),
      row("a letter for a digit", "GET / HTTP/1.x", bad_version),
      row("a space behind the version", "GET / HTTP/1.1 ", bad_version),
      row("another word", "GET / HTTP/1.1 x", bad_version),
      row("two spaces before the target", "GET  / HTTP/1.1", no_target),
      row("two spaces behind the target", "GET /  HTTP/1.1", bad_version),
      row("a tab before the target", "GET\t/ HTTP/1.1", method),
      row("a tab behind the target", "GET /\tHTTP/1.1", character),
      row("a space first", " GET / HTTP/1.1", method),
      row("no method", "/ HTTP/1.1", method),
      row("a bracket in the method", "GE(T / HTTP/1.1", method),
      row("a colon behind the method", "GET: / HTTP/1.1", method),
      row("UTF-8 in the method", "G\xc3\x89T / HTTP/1.1", method),
      row("a method of 33 letters", std::string(33, 'M') + " / HTTP/1.1",
          "501 the method is too long"),
      row("HEAD in lower case", "head / HTTP/1.1", capitals),
      row("CONNECT in mixed case", "Connect a:1 HTTP/1.1", capitals),
      row("TRACE in lower case", "trace / HTTP/1.1", capitals),
      row("no target", "GET HTTP/1.1", no_version),
      row("a space in the target", "GET /a b HTTP/1.1", bad_version),
      row("a fragment", "GET /a#b HTTP/1.1", character),
      row("only a fragment", "GET # HTTP/1.1", no_target),
      row("a fragment behind 20 characters", "GET /234567890123456789#b HTTP/1.1", character),
      row("raw UTF-8", "GET /\xc3\xa9 HTTP/1.1", character),
      row("raw 0xff", "GET /\xff HTTP/1.1", character),
      row("a relative path", "GET a HTTP/1.1", neither),
      row("a query alone", "GET ?a HTTP/1.1", neither),
      row("a host", "GET a.example:80 HTTP/1.1", neither),
      row("another scheme", "GET ftp://a/ HTTP/1.1", neither),
      row("a scheme and no slashes", "GET http:/a HTTP/1.1", neither),
      row("an asterisk", "GET * HTTP/1.1", "400 the target * is for OPTIONS alone"),
      row("more than an asterisk", "OPTIONS *a HTTP/1.1", neither),
      row("no host in the target", "GET http:///a HTTP/1.1", bad_host),
      row("nothing behind the scheme", "GET http:// HTTP/1.1", bad_host),
      row("a user in the target", "GET http://u@a/ HTTP/1.1", bad_host),
      row("a user and a password", "GET http://u:p@a/ HTTP/1.1", bad_host),
      row("a bad port in the target", "GET http://a:x/ HTTP/1.1", bad_host),
      row("a query and no path", "GET http://a?b HTTP/1.1",
          "400 the target has a query, but no path"),
      row("CONNECT to a path", "CONNECT / HTTP/1.1", "400 CONNECT needs a host and a port"),
      row("CONNECT without a port", "CONNECT a HTTP/1.1", "400 CONNECT needs a host and a port"),
      row("CONNECT to an address of http", "CONNECT http://a:1/ HTTP/1.1",
          "400 CONNECT needs a host and a port"),
      {"NUL in the target", "GET /\0 HTTP/1.1\r\n"s, "400 a control character"},
      {"delete in the target", "GET /\x7f HTTP/1.1\r\n", "400 a control character"},
      {"a response", "HTTP/1.1 200 OK\r\n\r\n", method},
  });
}

TEST(RequestVectors, OfExpectationsAreRefused) {
  const std::string other = "417 an expectation other than 100-continue";
  expect_answers({
      {"another", post("Expect: 200-ok\r\nContent-Length: 1\r\n"), other},
      {"a list", post("Expect: 100-continue, x\r\nContent-Length: 1\r\n"), other},
      {"nothing", post("Expect:\r\nContent-Length: 1\r\n"), other},
      {"one good, one other", post("Expect: 100-continue\r\nExpect: x\r\nContent-Length: 1\r\n"),
       other},
  });
}

// A client that speaks TLS, or nothing we know, is told so by its first bytes, not by a time-out.
TEST(RequestVectors, OfOtherProtocolsAreRefusedAtOnce) {
  EXPECT_EQ(outcome_at_once<RequestParser>("\x16"), "400 a control character");
  EXPECT_EQ(outcome_at_once<RequestParser>("SSH-2.0-OpenSSH_9.2\r\n"),
            "400 the request line does not begin with a method");
  EXPECT_EQ(outcome_at_once<RequestParser>("*1\r\n"),
            "400 the request line does not begin with a method");
}

}  // namespace
}  // namespace sluice::net
