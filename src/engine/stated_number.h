// A number stated by a request: a cost or an amount.
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

// Digits. Many servers overlook blanks around them and a plus sign before them, and so do we. A
// number too large to be read is the largest: its sender did not mean none.
[[nodiscard]] inline std::optional<std::uint64_t> stated_number(std::string_view text) noexcept {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  return parse_number(text).value_or(std::numeric_limits<std::uint64_t>::max());
}

// Calls visit(element) for each element of a header that may be a list: proxies join lines of one
// name by commas. A header without a comma has one element, which may be empty.
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
