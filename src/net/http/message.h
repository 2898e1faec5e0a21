// Parsed start line and headers: plain data, views into the caller's buffer.
#pragma once

#include <sluice/request.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::net {

// More lines than this are rejected, whatever the limits say: HeaderSet has a bit for each.
inline constexpr std::size_t kHeadersMax = 128;

// Some of the headers of a message, by their place.
class HeaderSet {
 public:
  // Below kHeadersMax.
  constexpr void add(std::size_t place) noexcept { words_[place / 64] |= bit(place); }
  [[nodiscard]] constexpr bool contains(std::size_t place) const noexcept {
    return place < kHeadersMax && (words_[place / 64] & bit(place)) != 0;
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t bit(std::size_t place) noexcept {
    return std::uint64_t{1} << place % 64;
  }

  std::array<std::uint64_t, kHeadersMax / 64> words_{};
};

// How long a body is.
struct BodyFraming {
  enum class Kind : std::uint8_t {
    none,         // no body, and no line that says so
    length,       // Content-Length, which may be 0
    chunked,      // Transfer-Encoding: chunked
    until_close,  // of responses only
  };
  Kind kind = Kind::none;
  std::uint64_t length = 0;  // of kind `length`

  friend bool operator==(const BodyFraming&, const BodyFraming&) = default;
};

// What requests and responses have in common.
struct MessageHead {
  std::uint8_t minor_version = 1;  // HTTP/1.0 or HTTP/1.1
  // The caller's, as far as they are filled.
  std::span<const HeaderView> headers;
  // Lines that concern this connection, and lines whose meaning is in other fields (Host,
  // Content-Length, Expect). A proxy leaves them out and states its own.
  HeaderSet restated;
  // Connection names other headers than those in `restated`: is_hop_by_hop() tells which.
  bool connection_names_headers = false;
  BodyFraming body;
  bool keep_alive = true;    // the sender agrees to another message on this connection
  std::string_view upgrade;  // what to switch to, if Connection asks for it; else empty
};

struct RequestHead : MessageHead {
  std::string_view method;
  std::string_view target;  // as sent
  // What to route by: path and query, * for OPTIONS, the authority for CONNECT. An absolute target
  // without a path has "/", or "*" if the method is OPTIONS.
  std::string_view path_and_query;
  // Of the target if that names one, else of the Host line, checked; may be empty in HTTP/1.0.
  std::string_view host;
  bool expects_continue = false;  // and has a body to wait with
  bool accepts_trailers = false;  // TE: trailers
};

struct ResponseHead : MessageHead {
  std::uint16_t status = 0;
  std::string_view reason;
  // What Content-Length says, also where there is no body: answers to HEAD, and 304.
  std::optional<std::uint64_t> declared_length;
};

}  // namespace sluice::net
