// Takes the framing off a chunked body, strictly.
//
// Chunk extensions are checked and dropped; their length over the whole body is bounded, so that a
// peer cannot make us read much to receive little. Lines end with CR LF and nothing else, and no
// spaces are accepted around sizes and extensions. One thread, no allocation.
#pragma once

#include "net/http/fault.h"
#include "net/http/field_reader.h"
#include <sluice/request.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::net {

struct BodyPiece {
  std::string_view data;     // within the bytes that were fed
  std::size_t consumed = 0;  // of those, the data included
  bool done = false;         // the unconsumed rest belongs to the next message
  HttpFault fault;           // stays
};

struct ChunkLimits {
  std::size_t extension_bytes = 4096;  // of all chunks together; beyond: 400
  std::size_t trailer_bytes = 8192;    // all lines with their ends and the empty one; beyond: 431
  std::size_t trailers = 64;           // also no more than the caller has room for; beyond: 431
};

class ChunkedDecoder {
 public:
  ChunkedDecoder() noexcept = default;  // without room for trailers
  explicit ChunkedDecoder(std::span<HeaderView> trailers, const ChunkLimits& limits = {}) noexcept
      : trailers_(trailers), limits_(limits) {}

  // At most one run of data a call: call again with the rest while something was consumed. A
  // trailer section is consumed as a whole, once its last byte is there; views of trailers point
  // into the bytes of that call.
  [[nodiscard]] BodyPiece feed(std::string_view bytes) noexcept;

  // When done.
  [[nodiscard]] std::span<const HeaderView> trailers() const noexcept {
    return trailers_.first(cursor_.count);
  }

 private:
  enum class State : std::uint8_t {
    size_first,  // the first digit of a size
    size,        // more digits, or what ends them
    extension_name_first,
    extension_name,
    extension_value_first,
    extension_value,
    extension_quoted,
    extension_escaped,   // the character behind a backslash
    extension_unquoted,  // behind the closing quote
    line_feed,           // of a chunk's first line
    data,
    data_return,  // the CR behind the data
    data_feed,    // and its LF
    trailers,
    done,
    fault,
  };

  [[nodiscard]] const char* step(char c) noexcept;
  [[nodiscard]] const char* step_size(char c) noexcept;
  [[nodiscard]] const char* step_extension(char c) noexcept;
  [[nodiscard]] const char* end_of_part(char c) noexcept;
  [[nodiscard]] const char* begin_data(char c) noexcept;
  [[nodiscard]] BodyPiece take_data(std::string_view bytes, std::size_t at) noexcept;
  [[nodiscard]] BodyPiece take_trailers(std::string_view bytes, std::size_t at) noexcept;
  [[nodiscard]] BodyPiece failed(std::size_t consumed, HttpFault fault) noexcept;

  std::span<HeaderView> trailers_;
  ChunkLimits limits_;
  State state_ = State::size_first;
  std::uint8_t digits_ = 0;      // of the size
  std::uint64_t remaining_ = 0;  // of the chunk
  std::size_t extension_bytes_ = 0;
  const char* trailers_begin_ = nullptr;  // of the section, where it was when last looked at
  FieldCursor cursor_;                    // counted from there
  HttpFault fault_;
};

}  // namespace sluice::net
