// A number that a request states: of a cost, or of an amount.
#pragma once

#include "base/characters.h"
#include "base/text.h"

#include <algorithm>
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

}  // namespace sluice::engine
