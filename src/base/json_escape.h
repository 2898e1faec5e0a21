// What stands between the quotes of a JSON text. Pure.
#pragma once

#include "base/byte_words.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

[[nodiscard]] constexpr bool is_plain_in_json(char c) noexcept {
  return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f &&
         c != '"' && c != '\\';
}

// Not zero if one of the eight characters does not stand for itself. Each subtraction sets the high
// bit of the byte that it is about; a borrow reaches others only where there is such a byte.
[[nodiscard]] constexpr std::uint64_t special_in_json(std::uint64_t word) noexcept {
  const auto equal_to = [word](unsigned char c) {
    return (word ^ kOneInEachByte * c) - kOneInEachByte;
  };
  return (word | (word - kOneInEachByte * 0x20U) | equal_to('"') | equal_to('\\') |
          equal_to(0x7f)) &
         kHighBits;
}

// How many characters at the beginning stand for themselves: nearly all of nearly every text.
[[nodiscard]] inline std::size_t plain_json_prefix(std::string_view text) noexcept {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  constexpr std::uint64_t kSpaces = kOneInEachByte * ' ';
  std::size_t plain = 0;
  while (plain + kWord <= text.size() && special_in_json(load_word(text.data() + plain)) == 0) {
    plain += kWord;
  }
  const std::size_t rest = text.size() - plain;
  if (rest < kWord) {
    const std::uint64_t padded = load_short(text.data() + plain, rest) | kSpaces << (8 * rest);
    if (special_in_json(padded) == 0) return text.size();
  }
  while (plain < text.size() && is_plain_in_json(text[plain])) ++plain;
  return plain;
}

[[nodiscard]] inline bool is_plain_in_json(std::string_view text) noexcept {
  return plain_json_prefix(text) == text.size();
}

// Hands the escaped text to `put` in pieces. Bytes that are not UTF-8 become U+FFFD, one each.
template <class Put>
void escape_json(std::string_view text, Put&& put) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto put_escaped = [&](char c) {
    if (c == '"') return put(std::string_view{"\\\""});
    if (c == '\\') return put(std::string_view{"\\\\"});
    const auto byte = static_cast<unsigned char>(c);
    const std::array<char, 6> code{'\\', 'u', '0', '0', kHex[byte >> 4U], kHex[byte & 15U]};
    return put(std::string_view{code.data(), code.size()});
  };
  while (true) {
    const std::size_t plain = plain_json_prefix(text);
    if (plain > 0) put(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    if (static_cast<unsigned char>(text.front()) < 0x80) {
      put_escaped(text.front());
      text.remove_prefix(1);
      continue;
    }
    const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    const auto beyond =
        static_cast<std::size_t>(std::find_if(text.begin(), text.end(), is_ascii) - text.begin());
    const std::size_t valid = valid_utf8_prefix(text.substr(0, beyond));
    put(valid > 0 ? text.substr(0, valid) : std::string_view{"\\ufffd"});
    text.remove_prefix(std::max<std::size_t>(valid, 1));
  }
}

}  // namespace sluice
