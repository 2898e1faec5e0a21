#include "net/http/body_reader.h"

#include <algorithm>

namespace sluice::net {

using Kind = BodyFraming::Kind;

BodyReader::BodyReader(const BodyFraming& framing, std::span<HeaderView> trailers,
                       const ChunkLimits& limits) noexcept
    : kind_(framing.kind),
      is_done_(kind_ == Kind::none || (kind_ == Kind::length && framing.length == 0)),
      remaining_(framing.length),
      chunks_(trailers, limits) {}

BodyPiece BodyReader::feed(std::string_view bytes) noexcept {
  if (is_done_) return {.done = true};
  if (kind_ == Kind::until_close) return {.data = bytes, .consumed = bytes.size()};
  const BodyPiece piece = kind_ == Kind::length ? take_of_length(bytes) : chunks_.feed(bytes);
  is_done_ = piece.done;
  return piece;
}

BodyPiece BodyReader::take_of_length(std::string_view bytes) noexcept {
  const std::string_view data = bytes.substr(0, std::min<std::uint64_t>(remaining_, bytes.size()));
  remaining_ -= data.size();
  return {.data = data, .consumed = data.size(), .done = remaining_ == 0};
}

HttpFault BodyReader::end_of_input() noexcept {
  if (kind_ == Kind::until_close) is_done_ = true;
  return is_done_ ? HttpFault{} : bad_request("the body ends early");
}

}  // namespace sluice::net
