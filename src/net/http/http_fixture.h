// What the tests and fuzz targets of the codec share: heads as text, and the promises that hold for
// any bytes.
#pragma once

#include "net/http/body_reader.h"
#include "net/http/head_writer.h"
#include "net/http/header_lists.h"
#include "net/http/request_parser.h"
#include "net/http/response_parser.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::net::fixture {

using HeaderRoom = std::array<HeaderView, kHeadersMax>;

inline std::string describe(const HeadParse& parse) {
  switch (parse.state) {
    case HeadParse::State::need_more: return "need more";
    case HeadParse::State::complete: return "complete at " + std::to_string(parse.head_bytes);
    case HeadParse::State::fault: return std::to_string(parse.fault.status) + " " + parse.fault.why;
  }
  return "?";
}

inline std::string describe(const BodyFraming& body) {
  switch (body.kind) {
    case BodyFraming::Kind::none: return "none";
    case BodyFraming::Kind::length: return "length " + std::to_string(body.length);
    case BodyFraming::Kind::chunked: return "chunked";
    case BodyFraming::Kind::until_close: return "until close";
  }
  return "?";
}

inline std::string line(std::string_view name, std::string_view value) {
  return std::string{name} + ": " + std::string{value} + "\n";
}

// The headers that a proxy passes on, in their order.
inline std::string describe_end_to_end(const MessageHead& head) {
  std::string text;
  for (std::size_t i = 0; i < head.headers.size(); ++i) {
    const HeaderView& header = head.headers[i];
    if (head.restated.contains(i) || is_hop_by_hop(header.name, head.headers)) continue;
    text += line(header.name, header.value);
  }
  return text;
}

// What survives being written and read again.
inline std::string describe_meaning(const RequestHead& head) {
  return std::string{head.method} + " " + std::string{head.path_and_query} + " of " +
         std::string{head.host} + ", body " + describe(head.body) +
         (head.expects_continue ? ", expects 100" : "") +
         (head.accepts_trailers ? ", accepts trailers" : "") + ", upgrade <" +
         std::string{head.upgrade} + ">\n" + describe_end_to_end(head);
}

inline std::string describe_meaning(const ResponseHead& head) {
  return std::to_string(head.status) + " " + std::string{head.reason} + ", body " +
         describe(head.body) + ", upgrade <" + std::string{head.upgrade} + ">\n" +
         describe_end_to_end(head);
}

// All of it.
template <class Head>
std::string describe(const Head& head) {
  std::string text = describe_meaning(head) + "HTTP/1." + std::to_string(head.minor_version) +
                     (head.keep_alive ? " keeps alive" : " closes") +
                     (head.connection_names_headers ? ", names headers" : "") + "\n";
  for (std::size_t i = 0; i < head.headers.size(); ++i) {
    text += head.restated.contains(i) ? "- " : "+ ";
    text += line(head.headers[i].name, head.headers[i].value);
  }
  return text;
}

// The answer, and the head if there is one.
template <class Parser>
std::string outcome(Parser& parser, std::string_view bytes) {
  const HeadParse parse = parser.parse(bytes);
  std::string text = describe(parse);
  if (parse.state == HeadParse::State::complete) text += "\n" + describe(parser.head());
  return text;
}

template <class Parser>
std::string outcome_at_once(std::string_view bytes, const HeadLimits& limits = {}) {
  HeaderRoom headers;
  Parser parser{headers, limits};
  return outcome(parser, bytes);
}

// The first prefix on which a parser that has seen all shorter ones answers otherwise than one that
// has seen none; npos if there is none. A step of more than 1 leaves prefixes out.
template <class Parser>
std::size_t first_dependence_on_pieces(std::string_view bytes, const HeadLimits& limits = {},
                                       std::size_t step = 1) {
  HeaderRoom headers;
  Parser parser{headers, limits};
  for (std::size_t size = 0; size <= bytes.size(); size += step) {
    const std::string_view prefix = bytes.substr(0, size);
    // Complete or refused, it stays so.
    const std::string so_far = outcome(parser, prefix);
    if (so_far != outcome_at_once<Parser>(prefix, limits)) return size;
    if (so_far != "need more" && so_far != outcome_at_once<Parser>(bytes, limits)) return size;
  }
  return std::string_view::npos;
}

// A body, decoded.
struct Decoded {
  std::string data;
  std::string trailers;
  std::size_t consumed = 0;
  bool done = false;
  HttpFault fault;

  [[nodiscard]] std::string text() const {
    return (done ? "done at " + std::to_string(consumed) : "not done") + ", " +
           (fault ? std::to_string(fault.status) + " " + fault.why : "no fault") + "\n" + data +
           "\n" + trailers;
  }
};

// Feeds `piece_bytes` more at a time, as a connection does that keeps what was not consumed.
inline Decoded decode_in_pieces(const BodyFraming& framing, std::string_view bytes,
                                std::size_t piece_bytes, const ChunkLimits& limits = {}) {
  HeaderRoom trailers;
  BodyReader reader{framing, trailers, limits};
  Decoded decoded;
  std::size_t received = 0;
  while (!reader.is_done() && !decoded.fault) {
    const BodyPiece piece =
        reader.feed(bytes.substr(decoded.consumed, received - decoded.consumed));
    decoded.data += piece.data;
    decoded.consumed += piece.consumed;
    decoded.fault = piece.fault;
    if (piece.consumed > 0) continue;
    if (received == bytes.size()) break;
    received = std::min(received + piece_bytes, bytes.size());
  }
  decoded.done = reader.is_done();
  if (decoded.done) {
    for (const HeaderView& one : reader.trailers()) decoded.trailers += line(one.name, one.value);
  }
  return decoded;
}

}  // namespace sluice::net::fixture
