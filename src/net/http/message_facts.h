// Facts about the message itself, gathered from its headers one by one.
//
// Internal to the parsers. Whatever could make two readers disagree about where a body ends is a
// fault: this is where request smuggling is rejected.
#pragma once

#include "net/http/fault.h"
#include "net/http/known_header.h"
#include "net/http/message.h"

#include <cstdint>
#include <string_view>

namespace sluice::net {

enum class Direction : std::uint8_t { request, response };

inline constexpr const char* kImitates = "a header of the connection, written with an underscore";

struct MessageFacts {
  std::uint64_t content_length = 0;
  bool has_content_length = false;
  bool is_chunked = false;
  bool has_other_coding = false;  // well formed, but not for us
  bool has_host = false;
  bool closes = false;       // Connection: close
  bool keeps_alive = false;  // Connection: keep-alive
  bool upgrades = false;     // Connection: upgrade
  bool names_headers = false;
  std::uint8_t options = 0;  // of Connection
  bool expects_continue = false;
  bool expects_other = false;
  bool accepts_trailers = false;
  std::string_view host;
  std::string_view upgrade;
  HeaderSet restated;
};

// One line: the header, its place among the headers, and what stands behind its colon, untrimmed.
struct NotedLine {
  const HeaderView& header;
  std::size_t place;
  std::string_view raw_value;
};

// For headers that known_header() knows.
[[nodiscard]] HttpFault note_known(MessageFacts& facts, Direction direction, KnownHeader known,
                                   const NotedLine& line) noexcept;

// How long the body is that the lines announce. Nothing announced: none.
[[nodiscard]] HttpFault announced_body(const MessageFacts& facts, int minor_version,
                                       BodyFraming& body) noexcept;

// Copies what requests and responses have in common.
void state_common(const MessageFacts& facts, MessageHead& head) noexcept;

}  // namespace sluice::net
