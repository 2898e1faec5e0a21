// A chunked body: its data do not depend on the pieces in which it comes, they survive being
// written and read, and http_parser finds the same. The first byte says how large the pieces are.

#include "fuzz.h"
#include "net/http/http_parser_fixture.h"

#include <array>
#include <string>
#include <string_view>

namespace {

using namespace sluice::net;
using fixture::Decoded;
using sluice::fuzz::expect;

constexpr BodyFraming kChunked{.kind = BodyFraming::Kind::chunked};

Decoded decode(std::string_view bytes, std::size_t piece_bytes) {
  return fixture::decode_in_pieces(kChunked, bytes, piece_bytes);
}

std::string as_one_chunk(const std::string& data) {
  std::array<char, kChunkHeadBytesMax> head;
  std::string bytes;
  if (!data.empty()) bytes.append(format_chunk_head(data.size(), head)) += data + "\r\n";
  return bytes.append(kLastChunk);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece_bytes = 1 + data[0] % 16U;
  const std::string bytes{data + 1, data + size};
  const Decoded whole = decode(bytes, bytes.size());
  expect(decode(bytes, piece_bytes).text() == whole.text(), "the data do not depend on the pieces");
  expect(whole.consumed <= bytes.size(), "no more is consumed than there is");
  expect(!whole.done || !whole.fault, "what is done is not faulty");
  if (whole.fault) expect(*whole.fault.why != '\0', "a refusal has a reason");
  expect(decode(as_one_chunk(whole.data), 7).data == whole.data, "data survive being written");
  if (!whole.done) return 0;
  expect(fixture::body_by_http_parser(std::string_view{bytes}.substr(0, whole.consumed)) ==
             "done\n" + whole.data,
         "http_parser finds the same data");
  return 0;
}
