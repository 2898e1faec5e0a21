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

// How many characters at the beginning stand for themselves: nearly all of nearly every text.
[[nodiscard]] inline std::size_t plain_json_prefix(std::string_view text) noexcept {
  std::size_t plain = 0;
  for (; plain + sizeof(std::uint64_t) <= text.size(); plain += sizeof(std::uint64_t)) {
    const std::uint64_t word = load_word(text.data() + plain);
    const std::uint64_t special = (word & kHighBits) | where_below(word, 0x20) |
                                  where_equal(word, '"') | where_equal(word, '\\') |
                                  where_equal(word, 0x7f);
    if (special != 0) break;
  }
  while (plain < text.size() && is_plain_in_json(text[plain])) ++plain;
  return plain;
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
