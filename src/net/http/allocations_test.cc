// A request is read, written, and its body read, without an allocation. A program of its own, since
// it counts them.

#include "net/http/http_fixture.h"
#include "support/counted_new.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace sluice::net {
namespace {

const std::string kBytes =
    "POST http://b.example/c?d HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close, x-mine\r\n"
    "X-Mine: 1\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\nAccept: */*\r\n\r\n"
    "5;a=\"b\"\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n";

// Whether all went well.
bool forward_once(fixture::HeaderRoom& headers, std::span<char> room) {
  RequestParser parser{headers};
  const HeadParse parse = parser.parse(kBytes);
  if (parse.state != HeadParse::State::complete) return false;
  HeadWriter writer{room};
  write_request(writer, parser.head());
  if (!writer.finish()) return false;
  fixture::HeaderRoom trailers;
  BodyReader body{parser.head().body, trailers};
  std::string_view rest = std::string_view{kBytes}.substr(parse.head_bytes);
  while (!body.is_done()) {
    const BodyPiece piece = body.feed(rest);
    if (piece.consumed == 0) return false;
    rest.remove_prefix(piece.consumed);
  }
  return rest.empty();
}

TEST(HttpAllocations, AreNotMadeToForwardARequest) {
  fixture::HeaderRoom headers;
  std::array<char, 4096> room;
  const std::uint64_t before = testing::allocations();
  const bool is_forwarded = forward_once(headers, room);
  EXPECT_EQ(testing::allocations(), before);
  EXPECT_TRUE(is_forwarded);
}

}  // namespace
}  // namespace sluice::net
