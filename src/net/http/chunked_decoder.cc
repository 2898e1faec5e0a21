#include "net/http/chunked_decoder.h"

#include "net/http/characters.h"
#include "net/http/header_lists.h"

#include <algorithm>

namespace sluice::net {
namespace {

// Fifteen digits are one byte less than an exbibyte: no size of a chunk overflows anything.
constexpr std::uint8_t kSizeDigitsMax = 15;

constexpr const char* kNoSize = "a chunk without a size";
constexpr const char* kBadLine = "the first line of a chunk is malformed";

}  // namespace

BodyPiece ChunkedDecoder::feed(std::string_view bytes) noexcept {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    switch (state_) {
      case State::data: return take_data(bytes, at);
      case State::trailers: return take_trailers(bytes, at);
      case State::done: return {.consumed = at, .done = true};
      case State::fault: return failed(at, fault_);
      default: break;
    }
    if (const char* const why = step(bytes[at])) return failed(at, bad_request(why));
  }
  return {.consumed = bytes.size(), .done = state_ == State::done, .fault = fault_};
}

// One character of framing. Null: all is well.
const char* ChunkedDecoder::step(char c) noexcept {
  switch (state_) {
    case State::size_first:
    case State::size: return step_size(c);
    case State::line_feed: return begin_data(c);
    case State::data_return:
      state_ = State::data_feed;
      return c == '\r' ? nullptr : "a chunk does not end with its size";
    case State::data_feed:
      state_ = State::size_first;
      return c == '\n' ? nullptr : "a chunk does not end with its size";
    default: return step_extension(c);
  }
}

const char* ChunkedDecoder::step_size(char c) noexcept {
  const unsigned digit = hex_digit(c);
  if (digit > 15) return state_ == State::size_first ? kNoSize : end_of_part(c);
  if (state_ == State::size_first) {
    remaining_ = 0;
    digits_ = 0;
    state_ = State::size;
  }
  if (++digits_ > kSizeDigitsMax) return "the size of a chunk is too large";
  remaining_ = remaining_ << 4U | digit;
  return nullptr;
}

// Behind a size or an extension comes another extension or the end of the line.
const char* ChunkedDecoder::end_of_part(char c) noexcept {
  if (c != ';' && c != '\r') return kBadLine;
  state_ = c == ';' ? State::extension_name_first : State::line_feed;
  return nullptr;
}

const char* ChunkedDecoder::step_extension(char c) noexcept {
  if (++extension_bytes_ > limits_.extension_bytes) return "the chunk extensions are too long";
  switch (state_) {
    case State::extension_name_first:
      state_ = State::extension_name;
      return is_a(token_character, c) ? nullptr : kBadLine;
    case State::extension_name:
      if (is_a(token_character, c)) return nullptr;
      if (c != '=') return end_of_part(c);
      state_ = State::extension_value_first;
      return nullptr;
    case State::extension_value_first:
      state_ = c == '"' ? State::extension_quoted : State::extension_value;
      return c == '"' || is_a(token_character, c) ? nullptr : kBadLine;
    case State::extension_value: return is_a(token_character, c) ? nullptr : end_of_part(c);
    case State::extension_quoted:
      if (is_a(quoted_character, c)) return nullptr;
      state_ = c == '"' ? State::extension_unquoted : State::extension_escaped;
      return c == '"' || c == '\\' ? nullptr : kBadLine;
    case State::extension_escaped:
      state_ = State::extension_quoted;
      return is_a(control_character, c) ? kBadLine : nullptr;
    default: return end_of_part(c);  // behind the closing quote
  }
}

const char* ChunkedDecoder::begin_data(char c) noexcept {
  state_ = remaining_ == 0 ? State::trailers : State::data;
  return c == '\n' ? nullptr : kBadLine;
}

BodyPiece ChunkedDecoder::take_data(std::string_view bytes, std::size_t at) noexcept {
  const std::string_view rest = bytes.substr(at);
  const std::string_view data = rest.substr(0, std::min<std::uint64_t>(remaining_, rest.size()));
  remaining_ -= data.size();
  if (remaining_ == 0) state_ = State::data_return;
  return {.data = data, .consumed = at + data.size()};
}

BodyPiece ChunkedDecoder::take_trailers(std::string_view bytes, std::size_t at) noexcept {
  const std::string_view section = bytes.substr(at);
  if (section.data() != trailers_begin_) {
    trailers_begin_ = section.data();
    cursor_ = {};
  }
  const auto note = [](const HeaderView& header, std::size_t /*place*/,
                       std::string_view /*raw_value*/) noexcept {
    return is_forbidden_trailer(header.name) ? bad_request("a header that may not be a trailer")
                                             : HttpFault{};
  };
  const HeadLimits limits{.header_bytes = limits_.trailer_bytes, .headers = limits_.trailers};
  const HeadParse parse = read_fields(section, cursor_, limits, trailers_, note);
  if (parse.state == HeadParse::State::need_more) return {.consumed = at};
  if (parse.state == HeadParse::State::fault) return failed(at, parse.fault);
  state_ = State::done;
  return {.consumed = at + parse.head_bytes, .done = true};
}

BodyPiece ChunkedDecoder::failed(std::size_t consumed, HttpFault fault) noexcept {
  state_ = State::fault;
  fault_ = fault;
  return {.consumed = consumed, .fault = fault};
}

}  // namespace sluice::net
