#include "config/scalar_check.h"

#include "base/text.h"
#include "config/plain.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::config {
namespace {

using Problem = std::optional<Diagnostic>;

// Text without quotes that some reader of YAML takes for something else.
Problem check_surprise(const Node& scalar) {
  if (!scalar.is_plain()) return std::nullopt;
  const char* taken_for = nullptr;
  switch (classify_plain(scalar.text)) {
    case Plain::text: return std::nullopt;
    case Plain::flag:
    case Plain::flag_word: taken_for = "a truth value"; break;
    case Plain::integer:
    case Plain::odd_number: taken_for = "a number"; break;
  }
  return Diagnostic{fmt::format("{} is {} in YAML", quoted(scalar.text), taken_for),
                    fmt::format("put it in quotes, \"{}\", if it is meant as text", scalar.text)};
}

Problem check_text(const Node& scalar, const Format* format) {
  if (format != nullptr) {
    if (Problem problem = format->check(scalar.text)) return problem;
  } else if (scalar.text.empty()) {
    return Diagnostic{"the text is empty", "leave the key out, or write something"};
  }
  return check_surprise(scalar);
}

Problem check_word(const Node& scalar, const std::vector<std::string_view>& words) {
  if (std::find(words.begin(), words.end(), scalar.text) != words.end()) {
    return std::nullopt;
  }
  const std::string_view nearest = nearest_word(scalar.text, words);
  constexpr std::size_t kShortList = 6;  // worth showing beside a guess
  std::string remedy = nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest);
  if (nearest.empty() || words.size() <= kShortList) {
    remedy += fmt::format("{}known are {}", remedy.empty() ? "" : " ", join_words(words));
  }
  return Diagnostic{fmt::format("unknown value {}", quoted(scalar.text)), std::move(remedy)};
}

Problem check_flag(const Node& scalar) {
  if (scalar.is_plain() && classify_plain(scalar.text) == Plain::flag) return std::nullopt;
  if (!scalar.is_plain() && classify_plain(scalar.text) == Plain::flag) {
    return Diagnostic{fmt::format("{} is text because of its quotes", quoted(scalar.text)),
                      "write true or false without quotes"};
  }
  return Diagnostic{fmt::format("{} is neither true nor false", quoted(scalar.text)),
                    "write true or false"};
}

Diagnostic odd_number(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  if (digits.size() != text.size() && parse_number(digits)) {
    return {fmt::format("{} has underscores, which not all readers of YAML take for a number",
                        quoted(text)),
            fmt::format("write {}", digits)};
  }
  if (text.starts_with('0') && parse_number(text)) {
    return {fmt::format("{} begins with 0, which means base eight to some readers of YAML",
                        quoted(text)),
            "write the number without leading zeros"};
  }
  return {fmt::format("{} is not a whole number in digits", quoted(text)),
          "write it in decimal digits alone, as in 1000"};
}

Problem check_number(const Node& scalar, const Form& form) {
  const std::string range = fmt::format("use {} to {}", form.min, form.max);
  if (!scalar.is_plain()) {
    return Diagnostic{fmt::format("{} is text because of its quotes", quoted(scalar.text)),
                      "write the number without quotes"};
  }
  const Plain plain = classify_plain(scalar.text);
  if (plain == Plain::odd_number) return odd_number(scalar.text);
  if (plain != Plain::integer) {
    return Diagnostic{fmt::format("{} is not a whole number", quoted(scalar.text)), range};
  }
  const std::optional<std::uint64_t> number = parse_number(scalar.text);
  if (!number || *number < form.min || *number > form.max) {
    return Diagnostic{fmt::format("{} is out of range", scalar.text), range};
  }
  return std::nullopt;
}

Problem check_decimal(const Node& scalar, const Form& form) {
  if (!scalar.is_plain()) {
    return Diagnostic{fmt::format("{} is text because of its quotes", quoted(scalar.text)),
                      "write the number without quotes"};
  }
  const std::string_view text = scalar.text;
  const std::optional<std::uint64_t> number = parse_thousandths(text);
  if (number && *number >= form.min && *number <= form.max) return std::nullopt;
  const std::string range =
      fmt::format("use {} to {}", format_thousandths(form.min), format_thousandths(form.max));
  if (number) return Diagnostic{fmt::format("{} is out of range", text), range};
  // A number with a unit, as in 2x.
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789."));
  if (parse_thousandths(digits)) {
    return Diagnostic{fmt::format("{} is not a decimal number", quoted(text)),
                      fmt::format("write {}", digits)};
  }
  return Diagnostic{fmt::format("{} is not a decimal number with at most three digits behind "
                                "the point",
                                quoted(text)),
                    range};
}

Problem check_form(const Node& scalar, const Form& form) {
  switch (form.type) {
    case Form::Type::text: return check_text(scalar, form.format);
    case Form::Type::word: return check_word(scalar, form.words);
    case Form::Type::flag: return check_flag(scalar);
    case Form::Type::number: return check_number(scalar, form);
    case Form::Type::decimal: return check_decimal(scalar, form);
    case Form::Type::list:
    case Form::Type::map:
    case Form::Type::anything: break;
  }
  return Diagnostic{"a scalar is not expected here", {}};
}

// The form that the writer most likely meant: a number for digits, else one of text.
bool is_meant(const Node& scalar, const Form& form) {
  const bool looks_like_number = scalar.is_plain() && classify_plain(scalar.text) == Plain::integer;
  const bool is_number = form.type == Form::Type::number || form.type == Form::Type::decimal;
  return is_number == looks_like_number;
}

}  // namespace

std::optional<Diagnostic> check_scalar(const Node& scalar, const Shape& shape) {
  Problem reported;
  for (const Form& form : shape.forms) {
    if (!is_scalar_form(form)) continue;
    Problem problem = check_form(scalar, form);
    if (!problem) return std::nullopt;
    if (!reported || is_meant(scalar, form)) reported = std::move(problem);
  }
  return reported;
}

}  // namespace sluice::config
