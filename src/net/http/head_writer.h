// Writes start lines, headers and the framing of chunked bodies into a buffer of the caller.
//
// Nothing is written unchecked: names and methods are tokens, targets have no spaces, values no
// control characters but tabs. So the output always parses as the intended lines. The first mistake
// makes the whole message fail. Text of the program itself is checked by the compiler. One thread,
// no allocation.
#pragma once

#include "base/text_writer.h"
#include "net/http/characters.h"
#include "net/http/message.h"
#include "net/http/scan.h"
#include <sluice/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::net {

// The name of a header, written in the program. One that is no token does not compile.
class HeaderName {
 public:
  consteval HeaderName(const char* literal) : text_(literal) {
    if (!is_token(text_)) throw "not the name of a header";
  }
  [[nodiscard]] constexpr std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

// The same of a whole line, without its end: "Name: value".
class HeaderLine {
 public:
  consteval HeaderLine(const char* literal) : text_(literal) {
    const std::size_t colon = text_.find(": ");
    if (colon == std::string_view::npos || !is_token(text_.substr(0, colon)) ||
        !is_value(text_.substr(colon + 2))) {
      throw "not a header";
    }
  }
  [[nodiscard]] constexpr std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

class HeadWriter {
 public:
  explicit HeadWriter(std::span<char> buffer) noexcept : out_(buffer) {}

  // One of these first. The version is always HTTP/1.1. An empty reason stays empty.
  void request_line(std::string_view method, std::string_view target) noexcept;
  void status_line(std::uint16_t status, std::string_view reason) noexcept;
  void status_line(std::uint16_t status) noexcept;  // with its usual reason
  void last_chunk() noexcept;                       // the headers that follow are trailers

  void header(std::string_view name, std::string_view value) noexcept;
  void header(std::string_view name, std::uint64_t number) noexcept;
  // The same of what the program knows. Inlined, so that a name is a few stores instead of a call.
  [[gnu::always_inline]] void own_header(HeaderName name, std::string_view value) noexcept {
    if (!is_value(value)) return refuse("not the value of a header");
    out_.put(name.text(), ": ", value, "\r\n");
  }
  [[gnu::always_inline]] void own_header(HeaderName name, std::uint64_t number) noexcept {
    out_.put(name.text(), ": ");
    out_.number(number);
    out_.put("\r\n");
  }
  [[gnu::always_inline]] void own_line(HeaderLine line) noexcept { out_.put(line.text(), "\r\n"); }
  // Content-Length, Transfer-Encoding, or nothing.
  void framing(const BodyFraming& body) noexcept;

  // Adds the empty line. Returns the text, or why it could not be written: `unsupported` if it does
  // not fit, `invalid_argument` if a part is malformed.
  [[nodiscard]] Result<std::string_view> finish() noexcept;

 private:
  void write_status(std::uint16_t status, std::string_view reason) noexcept;
  void refuse(const char* why) noexcept {
    if (mistake_ == nullptr) mistake_ = why;
  }

  TextWriter out_;
  const char* mistake_ = nullptr;
};

// Decisions of a proxy about the connection on which it forwards a message.
struct Forwarding {
  enum class Persistence : std::uint8_t {
    unstated,    // HTTP/1.1 stays open
    close,       // Connection: close
    keep_alive,  // Connection: keep-alive, without which HTTP/1.0 closes
  };
  Persistence persistence = Persistence::unstated;
  bool upgrade = false;          // pass a wish to switch protocols, or the agreement, on
  bool expect_continue = false;  // forward it; else the caller has sent 100 already
};

// What a client of HTTP/1.x has to be told, so that it knows whether its connection stays.
[[nodiscard]] constexpr Forwarding::Persistence persistence_for(bool keep_alive,
                                                                unsigned minor_version) noexcept {
  if (!keep_alive) return Forwarding::Persistence::close;
  return minor_version == 0 ? Forwarding::Persistence::keep_alive
                            : Forwarding::Persistence::unstated;
}
// The same, on answers of one's own.
void write_persistence(HeadWriter& writer, Forwarding::Persistence persistence) noexcept;

// Request line and headers without the empty line, so that the caller can add headers: Host, all
// end-to-end headers, and the framing of the body. Absolute targets become plain ones. If the
// request has no host, as in HTTP/1.0, the caller has to add one: servers require it.
void write_request(HeadWriter& writer, const RequestHead& head,
                   const Forwarding& how = {}) noexcept;

// The body may be framed anew: until_close becomes chunked for a client that knows chunks.
void write_response(HeadWriter& writer, const ResponseHead& head, const BodyFraming& body,
                    const Forwarding& how = {}) noexcept;

// The line before a chunk's data: its size, which is not 0, in hexadecimal.
inline constexpr std::size_t kChunkHeadBytesMax = 18;
[[nodiscard]] std::string_view format_chunk_head(std::uint64_t data_bytes,
                                                 std::span<char, kChunkHeadBytesMax> into) noexcept;

inline constexpr std::string_view kChunkEnd = "\r\n";        // behind a chunk's data
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";  // without trailers

}  // namespace sluice::net
