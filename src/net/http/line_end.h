// The end of a line, which is also the proof that nothing forbidden stands in it.
//
// Looking for the next control character finds the carriage return of a good line and whatever
// makes a line bad, in one pass of sixteen bytes a step. Pure; no allocation.
#pragma once

#include "net/http/characters.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace sluice::net {

[[nodiscard]] inline std::size_t find_control_bytewise(std::string_view text,
                                                       std::size_t from) noexcept {
  while (from < text.size() && !is_a(control_character, text[from])) ++from;
  return from;
}

// Eight bytes a step, on any processor. The tests are exact for the lowest byte that meets one, and
// a borrow can only reach bytes above it, so the whole step is looked at again byte by byte.
[[nodiscard]] inline std::size_t find_control_wordwise(std::string_view text,
                                                       std::size_t from) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighBits = kOnes << 7U;
  for (; from + 8 <= text.size(); from += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + from, sizeof(word));
    const std::uint64_t below_space = (word - kOnes * 0x20) & ~word;
    const std::uint64_t not_delete = word ^ (kOnes * 0x7f);
    const std::uint64_t is_delete = (not_delete - kOnes) & ~not_delete;
    if (((below_space | is_delete) & kHighBits) == 0) continue;
    const std::size_t at = find_control_bytewise(text.substr(0, from + 8), from);
    if (at < from + 8) return at;  // otherwise it was a tab
  }
  return find_control_bytewise(text, from);
}

#if defined(__SSE2__)
[[nodiscard]] inline std::size_t find_control_sse2(std::string_view text,
                                                   std::size_t from) noexcept {
  const __m128i last_control = _mm_set1_epi8(0x1f);
  const __m128i tab = _mm_set1_epi8('\t');
  const __m128i del = _mm_set1_epi8(0x7f);
  for (; from + 16 <= text.size(); from += 16) {
    __m128i block;
    std::memcpy(&block, text.data() + from, sizeof(block));
    const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(block, last_control), block);
    const __m128i control =
        _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(block, tab), low), _mm_cmpeq_epi8(block, del));
    const auto found = static_cast<unsigned>(_mm_movemask_epi8(control));
    if (found != 0) return from + static_cast<std::size_t>(std::countr_zero(found));
  }
  return find_control_bytewise(text, from);
}
#endif

// Where the first control character other than a tab stands; the size if there is none.
[[nodiscard]] inline std::size_t find_control(std::string_view text,
                                              std::size_t from = 0) noexcept {
#if defined(__SSE2__)
  return find_control_sse2(text, from);
#else
  return find_control_wordwise(text, from);
#endif
}

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
