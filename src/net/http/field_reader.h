// Reads header lines as they become complete: headers of a message, and trailers.
//
// Internal to the parsers. Bytes are looked at once: the search for the end of a line goes on where
// it stopped. A fault is reported at the first prefix that shows it, so the result for some bytes
// does not depend on the pieces in which they arrived.
#pragma once

#include "net/http/characters.h"
#include "net/http/fault.h"
#include "net/http/line_end.h"
#include "net/http/message.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace sluice::net {

struct FieldCursor {
  std::size_t begin = 0;    // of all lines
  std::size_t line = 0;     // of the one that is incomplete
  std::size_t scanned = 0;  // nothing of interest stands before
  std::size_t count = 0;    // of complete lines

  [[nodiscard]] static constexpr FieldCursor at(std::size_t place) noexcept {
    return {.begin = place, .line = place, .scanned = place};
  }
};

// What is wrong with a line whose name ends at a character that may not stand in one.
[[nodiscard]] constexpr const char* name_mistake(std::string_view line, std::size_t end) noexcept {
  if (end == line.size()) return "a header without a colon";
  if (end == 0 && is_space(line[end])) return "a header line that continues the one before";
  if (end == 0 && line[end] == ':') return "a header without a name";
  if (is_space(line[end])) return "a space in the name of a header";
  return "a character that may not stand in the name of a header";
}

[[nodiscard]] inline HeadParse faulty(HttpFault fault) noexcept {
  return {.state = HeadParse::State::fault, .fault = fault};
}

// `note(line)` is asked about each header and returns a fault or none. When complete, `head_bytes`
// is where the empty line has ended.
template <class Note>
[[nodiscard]] HeadParse read_fields(std::string_view bytes, FieldCursor& cursor,
                                    const HeadLimits& limits, std::span<HeaderView> into,
                                    const Note& note) noexcept {
  const std::string_view window = bytes.substr(0, cursor.begin + limits.header_bytes);
  const std::size_t count_max = std::min({limits.headers, into.size(), kHeadersMax});
  for (;;) {
    const LineEnd end = find_line_end(window, cursor.scanned);
    if (end.state == LineEnd::State::fault) return faulty(bad_request(end.why));
    if (end.state == LineEnd::State::need_more) {
      cursor.scanned = end.at;
      const bool is_full = window.size() == cursor.begin + limits.header_bytes;
      return is_full ? faulty({431, "the headers are too long"}) : HeadParse{};
    }
    if (end.at == cursor.line) {
      return {.state = HeadParse::State::complete, .head_bytes = end.at + 2};
    }
    if (cursor.count == count_max) return faulty({431, "too many headers"});
    const std::string_view line = window.substr(cursor.line, end.at - cursor.line);
    // Not only within the line: a name near its end is found in one step as well.
    const std::size_t colon = find_not_token(window, cursor.line) - cursor.line;
    if (colon == 0 || colon == line.size() || line[colon] != ':') {
      return faulty(bad_request(name_mistake(line, colon)));
    }
    const std::string_view raw_value = line.substr(colon + 1);
    HeaderView& header = into[cursor.count];
    header = {.name = line.substr(0, colon), .value = trimmed(raw_value)};
    if (const HttpFault fault = note(header, cursor.count, raw_value)) return faulty(fault);
    ++cursor.count;
    cursor.line = cursor.scanned = end.at + 2;
  }
}

}  // namespace sluice::net
