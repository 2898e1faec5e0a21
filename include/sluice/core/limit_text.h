// Limits and options as text: `100/1s`, `1/90s`, `1000/month`, `20` (concurrency).
#pragma once

#include <sluice/diagnostic.h>
#include <sluice/limit.h>

#include <string>
#include <string_view>

namespace sluice::core {

// `amount/period` into a limit whose other fields are at their defaults. A period of day, week,
// month or year means calendar windows; an amount alone is for concurrency.
//
// `algorithm` empty: token_bucket, or fixed_window for a calendar period.
[[nodiscard]] Parsed<Limit> parse_limit(std::string_view text, std::optional<Algorithm> algorithm);

// Each names the known words, and the nearest one, when the text is none of them.
[[nodiscard]] Parsed<Algorithm> parse_algorithm(std::string_view text);
[[nodiscard]] Parsed<Refill> parse_refill(std::string_view text);
[[nodiscard]] Parsed<Align> parse_align(std::string_view text);

// The amount and the period the way parse_limit reads them.
[[nodiscard]] std::string rate_text(const Limit& limit);

}  // namespace sluice::core
