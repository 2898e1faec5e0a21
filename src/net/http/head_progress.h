// The progress of parsing start line and headers, and its next step: the same for both directions.
//
// Internal to the parsers.
#pragma once

#include "net/http/fault.h"
#include "net/http/field_reader.h"
#include "net/http/message.h"
#include "net/http/message_facts.h"

#include <span>
#include <string_view>

namespace sluice::net {

struct HeadProgress {
  const char* bytes_begin = nullptr;  // of the bytes so far; null: a new message begins
  bool has_start_line = false;
  FieldCursor cursor;  // before the headers: of the start line
  MessageFacts facts;
  HeadParse answer;

  [[nodiscard]] bool continues(std::string_view bytes) const noexcept {
    return bytes_begin != nullptr && bytes_begin == bytes.data();
  }
  void restart(std::string_view bytes) noexcept {
    bytes_begin = bytes.data();
    has_start_line = false;
    cursor = {};
    facts = {};
    answer = {};
  }
};

// `Rules` are those of a direction: kDirection, kEmptyLineMayComeFirst,
// parse_start_line(line), which returns a fault or none, and line_too_long(its beginning).
template <class Rules>
[[nodiscard]] HeadParse read_start_line(HeadProgress& progress, std::string_view bytes,
                                        std::size_t line_bytes_max, const Rules& rules) noexcept {
  FieldCursor& cursor = progress.cursor;
  if (Rules::kEmptyLineMayComeFirst && cursor.begin == 0 && bytes.starts_with("\r\n")) {
    cursor = FieldCursor::at(2);
  }
  const std::string_view window = bytes.substr(0, cursor.begin + line_bytes_max);
  const LineEnd end = find_line_end(window, cursor.scanned);
  if (end.state == LineEnd::State::fault) return faulty(bad_request(end.why));
  if (end.state == LineEnd::State::need_more) {
    cursor.scanned = end.at;
    const bool is_full = window.size() == cursor.begin + line_bytes_max;
    return is_full ? faulty(Rules::line_too_long(window.substr(cursor.line))) : HeadParse{};
  }
  const std::string_view line = window.substr(cursor.line, end.at - cursor.line);
  if (const HttpFault fault = rules.parse_start_line(line)) return faulty(fault);
  cursor = FieldCursor::at(end.at + 2);
  progress.has_start_line = true;
  return {.state = HeadParse::State::complete};
}

template <class Rules>
[[nodiscard]] HeadParse read_headers(HeadProgress& progress, std::string_view bytes,
                                     const HeadLimits& limits, std::span<HeaderView> into,
                                     const Rules& /*rules*/) noexcept {
  const auto note = [&facts = progress.facts](const HeaderView& header, std::size_t place,
                                              std::string_view raw_value) noexcept -> HttpFault {
    const KnownHeader known = known_header(header.name);
    if (known == KnownHeader::other) {
      const bool may_imitate = Rules::kDirection == Direction::request;
      if (may_imitate && imitates_known(header.name)) [[unlikely]]
        return bad_request(kImitates);
      return {};
    }
    return note_known(facts, Rules::kDirection, known, {header, place, raw_value});
  };
  return read_fields(bytes, progress.cursor, limits, into, note);
}

// When complete, the lines are all there, but not yet understood together.
template <class Rules>
[[nodiscard]] HeadParse read_head(HeadProgress& progress, std::string_view bytes,
                                  const HeadLimits& limits, std::span<HeaderView> into,
                                  const Rules& rules) noexcept {
  if (!progress.has_start_line) {
    const HeadParse line = read_start_line(progress, bytes, limits.start_line_bytes, rules);
    if (line.state != HeadParse::State::complete) return line;
  }
  return read_headers(progress, bytes, limits, into, rules);
}

}  // namespace sluice::net
