// Characters as protocols class them: ASCII only, whatever the locale.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace sluice {

[[nodiscard]] constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\t'; }

[[nodiscard]] constexpr bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

[[nodiscard]] constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Whether two header names are the same to a server that hands headers to programs with _ for -, as
// CGI, WSGI and PHP do: to it X_Api_Key is X-Api-Key. Letter case does not matter. Compare a header
// that only a trusted proxy may write exactly instead.
[[nodiscard]] constexpr bool reads_as(std::string_view name, std::string_view other) noexcept {
  constexpr auto folded = [](char c) { return c == '_' ? '-' : lower(c); };
  if (name.size() != other.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (folded(name[i]) != folded(other[i])) return false;
  }
  return true;
}

[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// 0 to 15; 16 for what is no hexadecimal digit.
[[nodiscard]] constexpr unsigned hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return 16;
}

// The character that the three at the front of the text stand for, as %41 does; nothing if they do
// not.
[[nodiscard]] constexpr std::optional<char> decode_percent(std::string_view text) noexcept {
  if (text.size() < 3 || text[0] != '%') return std::nullopt;
  const unsigned high = hex_digit(text[1]);
  const unsigned low = hex_digit(text[2]);
  if (high > 15 || low > 15) return std::nullopt;
  return static_cast<char>(high << 4U | low);
}

}  // namespace sluice
