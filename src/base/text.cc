#include "base/text.h"

#include "base/json_escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <vector>

namespace sluice {
namespace {

// Edits that turn one word into the other; swapped neighbours count as one.
std::size_t distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return cost[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

// The length of the UTF-8 sequence at the front, or 0 when there is none.
std::size_t utf8_sequence(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  std::size_t length = 0;
  std::uint32_t code = 0;
  if (first < 0x80) return 1;
  if ((first & 0xe0U) == 0xc0) length = 2, code = first & 0x1fU;
  if ((first & 0xf0U) == 0xe0) length = 3, code = first & 0x0fU;
  if ((first & 0xf8U) == 0xf0) length = 4, code = first & 0x07U;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t kShortest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kShortest[length] || code > 0x10ffff || surrogate ? 0 : length;
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view digits) noexcept {
  std::uint64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> parse_thousandths(std::string_view text) noexcept {
  const std::size_t dot = text.find('.');
  const std::optional<std::uint64_t> whole = parse_number(text.substr(0, dot));
  if (!whole || *whole >= std::numeric_limits<std::uint64_t>::max() / 1000) return std::nullopt;
  if (dot == std::string_view::npos) return *whole * 1000;
  const std::string_view decimals = text.substr(dot + 1);
  if (decimals.size() > 3) return std::nullopt;
  std::optional<std::uint64_t> rest = parse_number(decimals);
  if (!rest) return std::nullopt;
  for (std::size_t i = decimals.size(); i < 3; ++i) *rest *= 10;
  return *whole * 1000 + *rest;
}

std::string format_thousandths(std::uint64_t thousandths) {
  std::string text = std::to_string(thousandths / 1000);
  if (thousandths % 1000 == 0) return text;
  text += '.' + std::to_string(1000 + thousandths % 1000).substr(1);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kLongestWord = 64;  // keeps the quadratic comparison cheap on any input
  if (word.size() > kLongestWord) return {};
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(word.size() / 2, 2);
  for (const std::string_view candidate : known) {
    const std::size_t edits = distance(word, candidate);
    if (edits < least) {
      least = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string counted(std::uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string join_words(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

std::size_t valid_utf8_prefix(std::string_view text) noexcept {
  std::size_t valid = 0;
  while (valid < text.size()) {
    const std::size_t length = utf8_sequence(text.substr(valid));
    if (length == 0) break;
    valid += length;
  }
  return valid;
}

std::string json_string(std::string_view text) {
  std::string json = "\"";
  escape_json(text, [&json](std::string_view piece) { json += piece; });
  json += '"';
  return json;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  const bool cut = text.size() > kLongest;
  std::string shown = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  shown += cut ? "...'" : "'";
  return shown;
}

}  // namespace sluice
