// Searches for the first character that does not belong, sixteen bytes a step where the processor
// can. Each gives the same answer as the bytewise search beside it. Pure; no allocation.
#pragma once

#include "base/byte_words.h"
#include "net/http/characters.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace sluice::net {

// ---- one by one, or eight by eight, on any processor --------------------------------------------

[[nodiscard]] constexpr std::size_t find_control_bytewise(std::string_view text,
                                                          std::size_t from) noexcept {
  while (from < text.size() && !is_a(control_character, text[from])) ++from;
  return from;
}

// The two tests are exact for the lowest byte that meets one. A borrow reaches only bytes above it,
// so a step in which something was found is looked at again byte by byte.
[[nodiscard]] inline std::size_t find_control_wordwise(std::string_view text,
                                                       std::size_t from) noexcept {
  for (; from + 8 <= text.size(); from += 8) {
    const std::uint64_t word = load_word(text.data() + from);
    if ((where_below(word, 0x20) | where_equal(word, 0x7f)) == 0) continue;
    const std::size_t at = find_control_bytewise(text.substr(0, from + 8), from);
    if (at < from + 8) return at;  // otherwise it was a tab
  }
  return find_control_bytewise(text, from);
}

// ---- sixteen by sixteen -------------------------------------------------------------------------

#if defined(__SSE2__)
namespace sse2 {

[[nodiscard]] inline __m128i load(const char* bytes) noexcept {
  __m128i block;
  std::memcpy(&block, bytes, sizeof(block));
  return block;
}

// All bits of each byte that is at most `last`, unsigned.
[[nodiscard]] inline __m128i at_most(__m128i block, char last) noexcept {
  return _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(last)), block);
}

[[nodiscard]] inline __m128i equal(__m128i block, char c) noexcept {
  return _mm_cmpeq_epi8(block, _mm_set1_epi8(c));
}

[[nodiscard]] inline __m128i controls(__m128i block) noexcept {
  return _mm_or_si128(_mm_andnot_si128(equal(block, '\t'), at_most(block, 0x1f)),
                      equal(block, 0x7f));
}

// The usual characters of tokens. Letters differ from their other case in one bit.
[[nodiscard]] inline __m128i letters_digits_dashes(__m128i block) noexcept {
  const __m128i lower = _mm_or_si128(block, _mm_set1_epi8(0x20));
  const __m128i letters = at_most(_mm_sub_epi8(lower, _mm_set1_epi8('a')), 25);
  const __m128i digits = at_most(_mm_sub_epi8(block, _mm_set1_epi8('0')), 9);
  return _mm_or_si128(_mm_or_si128(letters, digits), equal(block, '-'));
}

// Signed, bytes above 0x7f are below all others.
[[nodiscard]] inline __m128i not_of_targets(__m128i block) noexcept {
  return _mm_or_si128(_mm_cmplt_epi8(block, _mm_set1_epi8('!')),
                      _mm_or_si128(equal(block, '#'), equal(block, 0x7f)));
}

// Where the first byte stands that the test marks; the size if none does. Of texts shorter than
// sixteen bytes nothing is looked at. What is left at the end of others is looked at together with
// bytes before it, whose marks are shifted out.
template <class Test>
[[nodiscard]] inline std::size_t find(std::string_view text, std::size_t from,
                                      const Test& test) noexcept {
  const auto marks_at = [&](std::size_t at) {
    return static_cast<unsigned>(_mm_movemask_epi8(test(load(text.data() + at))));
  };
  if (text.size() < 16) return from;
  const std::size_t last = text.size() - 16;
  for (; from <= last; from += 16) {
    const unsigned marks = marks_at(from);
    if (marks != 0) return from + static_cast<std::size_t>(std::countr_zero(marks));
  }
  if (from >= text.size()) return text.size();
  const unsigned marks = marks_at(last) >> (from - last);
  return marks != 0 ? from + static_cast<std::size_t>(std::countr_zero(marks)) : text.size();
}

}  // namespace sse2
#endif

// ---- what the parsers use -----------------------------------------------------------------------

// Where the first control character other than a tab stands; the size if there is none.
[[nodiscard]] inline std::size_t find_control(std::string_view text,
                                              std::size_t from = 0) noexcept {
#if defined(__SSE2__)
  const std::size_t at =
      sse2::find(text, from, [](__m128i block) { return sse2::controls(block); });
  return find_control_bytewise(text, at);
#else
  return find_control_wordwise(text, from);
#endif
}

// Whether a header may have this value. Spaces at its ends would be lost when it is read, so they
// must not be there.
[[nodiscard]] constexpr bool is_value(std::string_view text) noexcept {
  if (text.empty()) return true;
  if (is_space(text.front()) || is_space(text.back())) return false;
  if (std::is_constant_evaluated()) return find_control_bytewise(text, 0) == text.size();
  return find_control(text) == text.size();
}

// Where the first character stands that may not be in a token; the size if there is none.
[[nodiscard]] inline std::size_t find_not_token(std::string_view text,
                                                std::size_t from = 0) noexcept {
#if defined(__SSE2__)
  from = sse2::find(text, from, [](__m128i block) {
    return _mm_xor_si128(sse2::letters_digits_dashes(block), _mm_set1_epi8(-1));
  });
#endif
  return find_not_a(token_character, text, from);
}

// The same of a request target.
[[nodiscard]] inline std::size_t find_not_target(std::string_view text,
                                                 std::size_t from = 0) noexcept {
#if defined(__SSE2__)
  from = sse2::find(text, from, [](__m128i block) { return sse2::not_of_targets(block); });
#endif
  return find_not_a(target_character, text, from);
}

}  // namespace sluice::net
