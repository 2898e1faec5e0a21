// What stands between the quotes of a JSON text. Pure.
#pragma once

#include "base/text.h"

#include <array>
#include <cstddef>
#include <string_view>

namespace sluice {

[[nodiscard]] constexpr bool is_plain_in_json(char c) noexcept {
  return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '"' && c != '\\';
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
  while (!text.empty()) {
    std::string_view valid = text.substr(0, valid_utf8_prefix(text));
    text.remove_prefix(valid.size());
    while (!valid.empty()) {
      std::size_t plain = 0;
      while (plain < valid.size() && is_plain_in_json(valid[plain])) ++plain;
      if (plain > 0) put(valid.substr(0, plain));
      if (plain < valid.size()) put_escaped(valid[plain++]);
      valid.remove_prefix(plain);
    }
    if (text.empty()) break;
    put(std::string_view{"\\ufffd"});
    text.remove_prefix(1);
  }
}

}  // namespace sluice
