// Characters as HTTP/1.1 classes them, one table lookup each.
#pragma once

#include "base/characters.h"
#include "base/text.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice::net {

// One byte for each character, one bit for each class.
using CharacterTable = std::array<std::uint8_t, 256>;

enum CharacterClass : std::uint8_t {
  token_character = 1,    // of methods, header names, options
  target_character = 2,   // of request targets: visible, but for # (browsers do send raw brackets)
  host_character = 4,     // of names and IPv4 addresses; percent signs and the like are rejected
  control_character = 8,  // may not stand in a value: all controls but the tab
  quoted_character = 16,  // between quotes, without a backslash before it
};

[[nodiscard]] constexpr CharacterTable make_character_table() noexcept {
  CharacterTable table{};
  for (unsigned i = 0; i < table.size(); ++i) {
    const char c = static_cast<char>(i);
    const bool alphanumeric = is_letter(c) || is_digit(c);
    const bool visible = i > 0x20 && i < 0x7f;
    const bool control = (i < 0x20 && c != '\t') || i == 0x7f;
    unsigned classes = 0;
    if (alphanumeric ||
        (visible && std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos)) {
      classes |= token_character;
    }
    if (visible && c != '#') classes |= target_character;
    if (alphanumeric || c == '-' || c == '.' || c == '_') classes |= host_character;
    if (control) classes |= control_character;
    if (!control && c != '"' && c != '\\') classes |= quoted_character;
    table[i] = static_cast<std::uint8_t>(classes);
  }
  return table;
}

inline constexpr CharacterTable kCharacters = make_character_table();

[[nodiscard]] constexpr bool is_a(CharacterClass one, char c) noexcept {
  return (kCharacters[static_cast<unsigned char>(c)] & one) != 0;
}

// Where the first character that is not of the class stands; the size if all are.
[[nodiscard]] constexpr std::size_t find_not_a(CharacterClass one, std::string_view text,
                                               std::size_t from = 0) noexcept {
  while (from < text.size() && is_a(one, text[from])) ++from;
  return from;
}

// Equality with a text whose length the compiler knows: no call.
template <std::size_t Size>
[[nodiscard]] inline bool is_exactly(std::string_view text, const char (&literal)[Size]) noexcept {
  return text.size() == Size - 1 && std::memcmp(text.data(), literal, Size - 1) == 0;
}

[[nodiscard]] constexpr bool is_token(std::string_view text) noexcept {
  return !text.empty() && find_not_a(token_character, text) == text.size();
}

}  // namespace sluice::net
