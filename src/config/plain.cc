#include "config/plain.h"

#include "base/text.h"
#include <sluice/request.h>

#include <algorithm>
#include <array>

namespace sluice::config {
namespace {

bool is_flag_word(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 8> kWords{"true", "false", "yes", "no",
                                                   "on",   "off",   "y",   "n"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return equals_ignoring_case(text, word); });
}

bool all_of(std::string_view text, std::string_view allowed) noexcept {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

std::string_view without_sign(std::string_view text) noexcept {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text;
}

// 0x1f, 0o17, 0b1
bool has_base(std::string_view digits) noexcept {
  if (digits.size() < 3 || digits[0] != '0') return false;
  const std::string_view rest = digits.substr(2);
  return (digits[1] == 'x' && all_of(rest, "0123456789abcdefABCDEF_")) ||
         (digits[1] == 'o' && all_of(rest, "01234567")) ||
         (digits[1] == 'b' && all_of(rest, "01_"));
}

// 1.5, .5, 1., 1e3, 1.5e-3, 1_000.5
bool is_fraction(std::string_view digits) noexcept {
  const std::size_t exponent = digits.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    if (!all_of(without_sign(digits.substr(exponent + 1)), "0123456789")) return false;
    digits = digits.substr(0, exponent);
  }
  const auto dots = std::count(digits.begin(), digits.end(), '.');
  const bool has_digit = digits.find_first_of("0123456789") != std::string_view::npos;
  return has_digit && dots <= 1 && digits.front() != '_' && all_of(digits, "0123456789._");
}

// 1:30, 1:30:00: base sixty to YAML 1.1
bool is_sexagesimal(std::string_view digits) noexcept {
  return all_of(digits, "0123456789_:") && is_digit(digits.front()) && is_digit(digits.back()) &&
         digits.find(':') != std::string_view::npos;
}

bool is_named_number(std::string_view digits) noexcept {
  return equals_ignoring_case(digits, ".inf") || equals_ignoring_case(digits, ".nan");
}

}  // namespace

Plain classify_plain(std::string_view text) noexcept {
  if (text == "true" || text == "false") return Plain::flag;
  if (is_flag_word(text)) return Plain::flag_word;
  const std::string_view digits = without_sign(text);
  if (digits.empty()) return Plain::text;
  const bool leading_zero = digits.size() > 1 && digits.front() == '0';
  if (all_of(digits, "0123456789") && !leading_zero && !text.starts_with('+')) {
    return Plain::integer;
  }
  if (has_base(digits) || is_fraction(digits) || is_sexagesimal(digits) ||
      is_named_number(digits)) {
    return Plain::odd_number;
  }
  return Plain::text;
}

}  // namespace sluice::config
