// Small helpers on text that later layers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// All of the text as an unsigned decimal number; nothing on any other character or on overflow.
[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view digits) noexcept;

// A decimal number with at most three digits behind the point, in thousandths: 1500 for "1.5".
// Nothing on any other text or on overflow.
[[nodiscard]] std::optional<std::uint64_t> parse_thousandths(std::string_view text) noexcept;
// The shortest text that reads back as the same: "1.5" for 1500, "2" for 2000.
[[nodiscard]] std::string format_thousandths(std::uint64_t thousandths);

// The known word that a misspelt one most likely meant, or an empty view.
[[nodiscard]] std::string_view nearest_word(std::string_view word,
                                            std::span<const std::string_view> known);

// "1 rule", "2 rules": for words whose plural has an s and no more.
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view one);

// "a, b and c"
[[nodiscard]] std::string join_words(std::span<const std::string_view> words);

// How many of its first bytes are whole UTF-8 characters: all of them, if the text is UTF-8.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view text) noexcept;

// Whether a byte of UTF-8 is not the first of its character.
[[nodiscard]] constexpr bool continues_character(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80;
}

// With quotes and escapes, ready to be put into JSON. Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

// Quoted for an error message: control characters and over-long tails made visible.
[[nodiscard]] std::string quoted(std::string_view text);
// Where <iomanip> is included, std::quoted would be the better match for a std::string.
[[nodiscard]] inline std::string quoted(const char* text) { return quoted(std::string_view{text}); }
[[nodiscard]] inline std::string quoted(const std::string& text) {
  return quoted(std::string_view{text});
}
[[nodiscard]] inline std::string quoted(std::string& text) {
  return quoted(std::string_view{text});
}

}  // namespace sluice
