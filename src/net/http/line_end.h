// The end of a line, which is also the proof that nothing forbidden stands in it.
//
// Looking for the next control character finds the carriage return of a good line and whatever
// makes a line bad, in one pass of sixteen bytes a step. Pure; no allocation.
#pragma once

#include "net/http/scan.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::net {

struct LineEnd {
  enum class State : std::uint8_t { need_more, found, fault };
  State state = State::need_more;
  std::size_t at = 0;    // of the carriage return; when more is needed, where to go on looking
  const char* why = "";  // when faulty
};

// Looks from `from` on, which lies in the line or at its end.
[[nodiscard]] inline LineEnd find_line_end(std::string_view text, std::size_t from) noexcept {
  using State = LineEnd::State;
  const std::size_t at = find_control(text, from);
  if (at == text.size()) return {.at = at};
  if (text[at] == '\n') return {State::fault, at, "a line feed without a carriage return"};
  if (text[at] != '\r') return {State::fault, at, "a control character"};
  if (at + 1 == text.size()) return {.at = at};
  if (text[at + 1] != '\n') return {State::fault, at, "a carriage return without a line feed"};
  return {.state = State::found, .at = at};
}

}  // namespace sluice::net
