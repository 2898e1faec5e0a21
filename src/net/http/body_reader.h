// The body of a message, as bytes of it arrive.
//
// A reader is fed with received bytes, and returns which part is data (a view, no copy) and how
// much it has consumed. The rest is fed again, with more behind it: this happens only within a
// trailer section. One thread, no allocation.
#pragma once

#include "net/http/chunked_decoder.h"
#include "net/http/fault.h"
#include "net/http/message.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::net {

class BodyReader {
 public:
  // No body.
  BodyReader() noexcept = default;
  // The trailers are the caller's; they are filled when the last chunk has come.
  BodyReader(const BodyFraming& framing, std::span<HeaderView> trailers,
             const ChunkLimits& limits = {}) noexcept;

  // At most one run of data a call: call again with the rest while something was consumed.
  [[nodiscard]] BodyPiece feed(std::string_view bytes) noexcept;

  // The sender will send no more. Faulty if that cuts the body short.
  [[nodiscard]] HttpFault end_of_input() noexcept;

  [[nodiscard]] bool is_done() const noexcept { return is_done_; }

  // When done. They are no headers, and are never to be added to those.
  [[nodiscard]] std::span<const HeaderView> trailers() const noexcept { return chunks_.trailers(); }

 private:
  [[nodiscard]] BodyPiece take_of_length(std::string_view bytes) noexcept;

  BodyFraming::Kind kind_ = BodyFraming::Kind::none;
  bool is_done_ = true;
  std::uint64_t remaining_ = 0;  // of kind `length`
  ChunkedDecoder chunks_;        // of kind `chunked`
};

}  // namespace sluice::net
