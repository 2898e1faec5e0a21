#include "net/http/body_reader.h"

#include "net/http/http_fixture.h"
#include "support/property.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::string_literals;
using fixture::decode_in_pieces;
using fixture::Decoded;
using fixture::HeaderRoom;
using Kind = BodyFraming::Kind;

constexpr BodyFraming kChunked{.kind = Kind::chunked};

Decoded decode(std::string_view bytes, const ChunkLimits& limits = {}) {
  return decode_in_pieces(kChunked, bytes, bytes.size(), limits);
}

// In one piece, byte by byte, and split once at every place: always the same.
void expect_decoded(const std::string& bytes, const std::string& expected,
                    const ChunkLimits& limits = {}) {
  EXPECT_EQ(decode(bytes, limits).text(), expected) << bytes;
  for (std::size_t piece = 1; piece < bytes.size(); ++piece) {
    const std::string text = decode_in_pieces(kChunked, bytes, piece, limits).text();
    EXPECT_EQ(text, expected) << bytes << "\nin pieces of " << piece;
    if (text != expected) return;
  }
}

void expect_data(const std::string& bytes, const std::string& data,
                 const std::string& trailers = "") {
  expect_decoded(bytes + "next", "done at " + std::to_string(bytes.size()) + ", no fault\n" + data +
                                     "\n" + trailers);
}

TEST(ChunkedDecoder, TakesTheFramingOff) {
  expect_data("0\r\n\r\n", "");
  expect_data("5\r\nhello\r\n0\r\n\r\n", "hello");
  expect_data("5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n", "hello, world");
  expect_data("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789");
  expect_data("4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n");
  expect_data("005\r\nhello\r\n000\r\n\r\n", "hello");
}

TEST(ChunkedDecoder, ChecksExtensionsAndDropsThem) {
  expect_data("5;a\r\nhello\r\n0;b=c\r\n\r\n", "hello");
  expect_data("5;a=b;c;d=\"e;\\\"\t\xe9\\\\\"\r\nhello\r\n0\r\n\r\n", "hello");
  expect_data("5;a=\"\"\r\nhello\r\n0\r\n\r\n", "hello");
}

TEST(ChunkedDecoder, KeepsTrailersApart) {
  expect_data("0\r\nX-Sum: 1\r\nY: \t2 \r\n\r\n", "", "X-Sum: 1\nY: 2\n");
  expect_data("1\r\na\r\n0\r\ngrpc-status: 0\r\n\r\n", "a", "grpc-status: 0\n");
}

TEST(ChunkedDecoder, RefusesWhatIsNotExact) {
  const std::string no_size = "400 a chunk without a size";
  const std::string line = "400 the first line of a chunk is malformed";
  const std::string end = "400 a chunk does not end with its size";
  const std::vector<std::pair<std::string, std::string>> vectors{
      {"\r\n", no_size},
      {" 5\r\nhello\r\n", no_size},
      {"-5\r\nhello\r\n", no_size},
      {"+5\r\nhello\r\n", no_size},
      {"x\r\n", no_size},
      {"g\r\n", no_size},
      {";a\r\n", no_size},
      {"\xb5\r\n", no_size},
      {"0x5\r\nhello\r\n", line},
      {"5h\r\nhello\r\n", line},
      {"5 \r\nhello\r\n", line},
      {"5\t\r\nhello\r\n", line},
      {"5 ;a\r\nhello\r\n", line},
      {"5, 5\r\nhello\r\n", line},
      {"5_0\r\nhello\r\n", line},
      {"5.\r\nhello\r\n", line},
      {"5\nhello\r\n", line},
      {"5\rhello\r\n", line},
      {"5\r\rhello\r\n", line},
      {"5\0\r\nhello\r\n"s, line},
      {"5;\r\nhello\r\n", line},
      {"5;;a\r\nhello\r\n", line},
      {"5;=a\r\nhello\r\n", line},
      {"5;a=\r\nhello\r\n", line},
      {"5;a =b\r\nhello\r\n", line},
      {"5; a\r\nhello\r\n", line},
      {"5;a= b\r\nhello\r\n", line},
      {"5;a=b c\r\nhello\r\n", line},
      {"5;a=\"b\r\nhello\r\n", line},
      {"5;a=\"b\\\r\n\"\r\nhello\r\n", line},
      {"5;a=\"b\"c\r\nhello\r\n", line},
      {"5;a=\"\n\"\r\nhello\r\n", line},
      {"5;a\nhello\r\n", line},
      {"5;a\n0\r\n\r\n", line},
      {"5;a\rX\nhello\r\n", line},
      {"5;\xc3\xa9\r\nhello\r\n", line},
      {"5;a=\"\x01\"\r\nhello\r\n", line},
      {"5\r\nhelloX\r\n0\r\n\r\n", end},
      {"5\r\nhello\n0\r\n\r\n", end},
      {"5\r\nhelloX\n0\r\n\r\n", end},
      {"5\r\nhello\n\n0\r\n\r\n", end},
      {"5\r\nhello\r0\r\n\r\n", end},
      {"5\r\nhello\rX0\r\n\r\n", end},
      {"5\r\nhello0\r\n\r\n", end},
      {"5\r\nhel\r\n0\r\n\r\n", end},
      {"5\r\nhello\r\n\r\n0\r\n\r\n", no_size},
      {"ffffffffffffffff\r\n", "400 the size of a chunk is too large"},
      {"10000000000000005\r\nhello", "400 the size of a chunk is too large"},
      {"0000000000000005\r\nhello", "400 the size of a chunk is too large"},
      {"0\r\n\n", "400 a line feed without a carriage return"},
      {"0\n\r\n", line},
      {"0\r\n\r\r\n", "400 a carriage return without a line feed"},
      {"0\r\nX: y\n\r\n", "400 a line feed without a carriage return"},
      {"0\r\nX : y\r\n\r\n", "400 a space in the name of a header"},
      {"0\r\n X: y\r\n\r\n", "400 a header line that continues the one before"},
      {"0\r\nX: y\r\n z\r\n\r\n", "400 a header line that continues the one before"},
      {"0\r\nX\r\n\r\n", "400 a header without a colon"},
      {"0\r\nX: \0\r\n\r\n"s, "400 a control character"},
      {"0\r\nGET / HTTP/1.1\r\n\r\n", "400 a space in the name of a header"},
  };
  for (const auto& [bytes, expected] : vectors) {
    const Decoded whole = decode(bytes);
    EXPECT_EQ(std::to_string(whole.fault.status) + " " + whole.fault.why, expected) << bytes;
    expect_decoded(bytes, whole.text());
  }
}

// What frames, routes or authorises a message is no trailer.
TEST(ChunkedDecoder, RefusesTrailersThatComeTooLate) {
  for (const char* const name : {"Content-Length",
                                 "transfer-encoding",
                                 "Host",
                                 "Connection",
                                 "Trailer",
                                 "TE",
                                 "Upgrade",
                                 "Expect",
                                 "Authorization",
                                 "Cookie",
                                 "Set-Cookie",
                                 "Content-Type",
                                 "X-Forwarded-For",
                                 "Forwarded",
                                 "Content-Encoding",
                                 "Cache-Control",
                                 "Max-Forwards",
                                 "X_Forwarded_For",
                                 "Transfer_Encoding",
                                 "Content_Length",
                                 "X-Forwarded-User",
                                 "True-Client-IP",
                                 "X_Client_IP",
                                 "X-Request-Id",
                                 "X-Original-URL"}) {
    const Decoded decoded = decode("0\r\n" + std::string{name} + ": 1\r\n\r\n");
    EXPECT_STREQ(decoded.fault.why, "a header that may not be a trailer") << name;
  }
}

TEST(ChunkedDecoder, BoundsExtensionsOfAllChunksTogether) {
  const ChunkLimits limits{.extension_bytes = 20};
  const std::string chunk = "1;abcd\r\nx\r\n";  // five bytes counted: the name and what ends it
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += chunk;
  EXPECT_FALSE(decode(bytes, limits).fault);
  EXPECT_STREQ(decode(bytes + chunk, limits).fault.why, "the chunk extensions are too long");
  expect_decoded(bytes + chunk, decode(bytes + chunk, limits).text(), limits);
}

TEST(ChunkedDecoder, BoundsTrailers) {
  const std::string lines = "A: 1\r\nB: 2\r\n\r\n";
  const auto fault = [&](const ChunkLimits& limits) {
    return decode("0\r\n" + lines, limits).fault;
  };
  EXPECT_FALSE(fault({.trailer_bytes = lines.size(), .trailers = 2}));
  EXPECT_EQ(fault({.trailer_bytes = lines.size() - 1}).status, 431);
  EXPECT_EQ(fault({.trailers = 1}).status, 431);
  BodyReader no_room{kChunked, {}};
  EXPECT_EQ(no_room.feed("0\r\nA: 1\r\n\r\n").fault.status, 431);
}

TEST(ChunkedDecoder, StaysFaultyAndStaysDone) {
  HeaderRoom trailers;
  ChunkedDecoder faulty{trailers};
  EXPECT_TRUE(faulty.feed("x").fault);
  EXPECT_TRUE(faulty.feed("5\r\n").fault);
  EXPECT_TRUE(faulty.feed("").fault);
  ChunkedDecoder done{trailers};
  EXPECT_TRUE(done.feed("0\r\n\r\n").done);
  EXPECT_TRUE(done.feed("5\r\n").done);
  EXPECT_EQ(done.feed("5\r\n").consumed, 0U);
}

// A buffer that makes room moves what it holds: the trailers are found all the same.
TEST(ChunkedDecoder, FindsTrailersThatWereMoved) {
  HeaderRoom trailers;
  BodyReader reader{kChunked, trailers};
  const std::string first = "0\r\nX: y\r\nZ";
  EXPECT_EQ(reader.feed(first).consumed, 3U);
  const std::string moved = "X: y\r\nZ: a\r\n\r\n";
  const BodyPiece piece = reader.feed(moved);
  EXPECT_TRUE(piece.done);
  EXPECT_EQ(piece.consumed, moved.size());
  ASSERT_EQ(reader.trailers().size(), 2U);
  EXPECT_EQ(reader.trailers()[0].name.data(), moved.data());
}

// Whatever is written as chunks is read as it was, in any pieces.
TEST(ChunkedDecoder, ReadsWhatTheWriterWrites) {
  testing::check_property(300, [] {
    const auto parts = *rc::gen::container<std::vector<std::string>>(
        rc::gen::nonEmpty(rc::gen::arbitrary<std::string>()));
    const auto piece_bytes = *rc::gen::inRange<std::size_t>(1, 40);
    std::string bytes;
    std::string data;
    for (const std::string& part : parts) {
      std::array<char, kChunkHeadBytesMax> head;
      bytes += format_chunk_head(part.size(), head);
      bytes += part;
      bytes += kChunkEnd;
      data += part;
    }
    bytes += kLastChunk;
    const Decoded decoded = decode_in_pieces(kChunked, bytes, piece_bytes);
    RC_ASSERT(decoded.done);
    RC_ASSERT(decoded.data == data);
    RC_ASSERT(decoded.consumed == bytes.size());
  });
}

// ---- the other kinds ----------------------------------------------------------------------------

TEST(BodyReader, HasNothingToReadWhereThereIsNoBody) {
  for (const BodyFraming& framing : {BodyFraming{}, BodyFraming{Kind::length, 0}}) {
    BodyReader reader{framing, {}};
    EXPECT_TRUE(reader.is_done());
    const BodyPiece piece = reader.feed("GET /");
    EXPECT_TRUE(piece.done);
    EXPECT_EQ(piece.consumed, 0U);
    EXPECT_FALSE(reader.end_of_input());
  }
}

TEST(BodyReader, TakesWhatItsLengthSaysAndNoMore) {
  BodyReader reader{{Kind::length, 5}, {}};
  EXPECT_EQ(reader.feed("hel").data, "hel");
  EXPECT_FALSE(reader.is_done());
  EXPECT_EQ(reader.feed("").consumed, 0U);
  const BodyPiece last = reader.feed("loGET /");
  EXPECT_EQ(last.data, "lo");
  EXPECT_EQ(last.consumed, 2U);
  EXPECT_TRUE(last.done);
  EXPECT_TRUE(reader.is_done());
}

TEST(BodyReader, ReadsUntilTheEnd) {
  BodyReader reader{{Kind::until_close}, {}};
  EXPECT_EQ(reader.feed("abc").data, "abc");
  EXPECT_FALSE(reader.is_done());
  EXPECT_FALSE(reader.end_of_input());
  EXPECT_TRUE(reader.is_done());
}

TEST(BodyReader, NoticesABodyThatIsCutShort) {
  BodyReader by_length{{Kind::length, 5}, {}};
  EXPECT_EQ(by_length.feed("hell").consumed, 4U);
  EXPECT_STREQ(by_length.end_of_input().why, "the body ends early");
  BodyReader chunked{kChunked, {}};
  EXPECT_EQ(chunked.feed("5\r\nhello\r\n0\r\n").consumed, 8U);
  EXPECT_STREQ(chunked.end_of_input().why, "the body ends early");
}

}  // namespace
}  // namespace sluice::net
