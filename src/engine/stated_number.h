// A number that a request states: of a cost, or of an amount.
#pragma once

#include "base/characters.h"
#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace sluice::engine {

// Digits; blanks around them and a plus sign before them are what many servers overlook, and so do
// we. One that is too large to be read is the largest: whoever wrote it did not mean none.
[[nodiscard]] inline std::optional<std::uint64_t> stated_number(std::string_view text) noexcept {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  return parse_number(text).value_or(std::numeric_limits<std::uint64_t>::max());
}

// Calls visit(element) for each element of a header that may be a list: proxies join lines of one
// name by commas. One without a comma has one element, which may be empty.
template <class Visit>
void each_element(std::string_view value, Visit&& visit) noexcept {
  while (true) {
    const std::size_t comma = value.find(',');
    visit(value.substr(0, comma));
    if (comma == std::string_view::npos) return;
    value.remove_prefix(comma + 1);
  }
}

}  // namespace sluice::engine
