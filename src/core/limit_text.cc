#include "base/duration.h"
#include "base/text.h"
#include <sluice/core/limit_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace sluice {

std::string_view to_string(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::token_bucket: return "token_bucket";
    case Algorithm::leaky_bucket: return "leaky_bucket";
    case Algorithm::gcra: return "gcra";
    case Algorithm::fixed_window: return "fixed_window";
    case Algorithm::sliding_log: return "sliding_log";
    case Algorithm::sliding_counter: return "sliding_counter";
    case Algorithm::sliding_buckets: return "sliding_buckets";
    case Algorithm::concurrency: return "concurrency";
  }
  return "unknown";
}

std::string_view to_string(Refill refill) noexcept {
  return refill == Refill::continuous ? "continuous" : "interval";
}

std::string_view to_string(Align align) noexcept {
  switch (align) {
    case Align::epoch: return "epoch";
    case Align::calendar: return "calendar";
    case Align::first_request: return "first_request";
  }
  return "unknown";
}

std::string_view to_string(CalendarUnit unit) noexcept {
  switch (unit) {
    case CalendarUnit::day: return "day";
    case CalendarUnit::week: return "week";
    case CalendarUnit::month: return "month";
    case CalendarUnit::year: return "year";
  }
  return "unknown";
}

std::string_view to_string(OnChange change) noexcept {
  switch (change) {
    case OnChange::keep: return "keep";
    case OnChange::proportional: return "proportional";
    case OnChange::reset: return "reset";
  }
  return "unknown";
}

std::string_view to_string(OnTableFull on_table_full) noexcept {
  switch (on_table_full) {
    case OnTableFull::approximate: return "approximate";
    case OnTableFull::allow: return "allow";
    case OnTableFull::reject: return "reject";
  }
  return "unknown";
}

}  // namespace sluice

namespace sluice::core {
namespace {

constexpr std::array kRefills{Refill::continuous, Refill::interval};
constexpr std::array kAligns{Align::epoch, Align::calendar, Align::first_request};
constexpr std::array kUnits{CalendarUnit::day, CalendarUnit::week, CalendarUnit::month,
                            CalendarUnit::year};

template <class Enum, std::size_t N>
std::optional<Enum> find(const std::array<Enum, N>& values, std::string_view text) noexcept {
  for (const Enum value : values) {
    if (to_string(value) == text) return value;
  }
  return std::nullopt;
}

template <class Enum, std::size_t N>
Parsed<Enum> parse_word(const std::array<Enum, N>& values, std::string_view kind,
                        std::string_view text) {
  if (const auto found = find(values, text)) return *found;
  std::array<std::string_view, N> words;
  for (std::size_t i = 0; i < N; ++i) words[i] = to_string(values[i]);
  const std::string_view nearest = nearest_word(text, words);
  const std::string guess =
      nearest.empty() ? std::string{} : fmt::format("did you mean {}? ", nearest);
  return mistake(fmt::format("unknown {} {}", kind, quoted(text)),
                 fmt::format("{}known are {}", guess, join_words(words)));
}

Parsed<std::uint64_t> parse_amount(std::string_view text, std::string_view whole) {
  if (whole.find(' ') != std::string_view::npos) {
    return mistake(fmt::format("there is a blank in {}", quoted(whole)),
                   "write amount/period without one, as in 100/1s");
  }
  if (text.starts_with('-')) {
    return mistake(fmt::format("the amount in {} is negative", quoted(whole)), "use at least 1");
  }
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return mistake(fmt::format("the amount in {} is not a whole number", quoted(whole)),
                   "write amount/period, as in 100/1s");
  }
  if (text.size() > 1 && text.starts_with('0')) {
    return mistake(fmt::format("the amount in {} begins with 0, which means base eight to some",
                               quoted(whole)),
                   "write the number without leading zeros");
  }
  const std::optional<std::uint64_t> amount = parse_number(text);
  if (!amount) {
    return mistake(fmt::format("the amount in {} is too large", quoted(whole)),
                   "use at most 1000000000");
  }
  return *amount;
}

// A unit without a number, however people spell it, as the period they mean; or nothing.
std::string_view spelt_out(std::string_view unit) {
  struct Spelling {
    std::string_view period;
    std::string_view words;  // with a blank on both sides of each
  };
  constexpr std::array kSpellings{
      Spelling{"1ms", " ms millisecond milliseconds "},
      Spelling{"1s", " s sec secs second seconds "},
      Spelling{"1m", " m min mins minute minutes "},
      Spelling{"1h", " h hr hour hours hourly "},
      Spelling{"1d", " d days "},
      Spelling{"7d", " w weeks "},
  };
  for (const Spelling& spelling : kSpellings) {
    if (spelling.words.find(fmt::format(" {} ", unit)) != std::string_view::npos) {
      return spelling.period;
    }
  }
  return {};
}

// A rate as other programs write it, in our form; or nothing.
std::optional<std::string> rate_of_others(std::string_view text) {
  struct Ending {
    std::string_view text;
    std::string_view period;
  };
  constexpr std::array kEndings{
      Ending{"r/s", "1s"},   Ending{"r/m", "1m"},   Ending{"rps", "1s"},     Ending{"rpm", "1m"},
      Ending{"req/s", "1s"}, Ending{"req/m", "1m"}, Ending{"req/min", "1m"},
  };
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  for (const Ending& ending : kEndings) {
    if (digits == 0 || text.substr(digits) != ending.text) continue;
    return fmt::format("{}/{}", text.substr(0, digits), ending.period);
  }
  return std::nullopt;
}

Parsed<Limit> without_period(std::string_view text, std::optional<Algorithm> algorithm) {
  if (algorithm != Algorithm::concurrency) {
    return mistake(fmt::format("{} lacks a period", quoted(text)),
                   "write amount/period, as in 100/1s");
  }
  const Parsed<std::uint64_t> amount = parse_amount(text, text);
  if (!amount) return tl::unexpected(amount.error());
  return Limit{.algorithm = Algorithm::concurrency, .amount = *amount};
}

}  // namespace

Parsed<Limit> parse_limit(std::string_view text, std::optional<Algorithm> algorithm) {
  if (const auto rate = rate_of_others(text)) {
    return mistake(fmt::format("{} is not of the form amount/period", quoted(text)),
                   fmt::format("write {}", *rate));
  }
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return without_period(text, algorithm);

  const Parsed<std::uint64_t> amount = parse_amount(text.substr(0, slash), text);
  if (!amount) return tl::unexpected(amount.error());
  const std::string_view period_text = text.substr(slash + 1);
  if (const auto unit = find(kUnits, period_text)) {
    Limit limit{.algorithm = algorithm.value_or(Algorithm::fixed_window), .amount = *amount};
    limit.unit = unit;
    if (limit.algorithm == Algorithm::fixed_window) limit.align = Align::calendar;
    return limit;
  }
  const Parsed<Nanos> period = parse_duration(period_text);
  if (const std::string_view meant = spelt_out(period_text); !period && !meant.empty()) {
    return mistake(fmt::format("the period in {} lacks a number", quoted(text)),
                   fmt::format("write {}/{}", *amount, meant));
  }
  if (!period) {
    return mistake(fmt::format("the period in {}: {}", quoted(text), period.error().message),
                   fmt::format("{}, or day, week, month, year", period.error().remedy));
  }
  return Limit{.algorithm = algorithm.value_or(Algorithm::token_bucket),
               .amount = *amount,
               .period = *period};
}

Parsed<Algorithm> parse_algorithm(std::string_view text) {
  return parse_word(kAlgorithms, "algorithm", text);
}

Parsed<Refill> parse_refill(std::string_view text) { return parse_word(kRefills, "refill", text); }

Parsed<Align> parse_align(std::string_view text) { return parse_word(kAligns, "alignment", text); }

std::string rate_text(const Limit& limit) {
  if (limit.algorithm == Algorithm::concurrency) return fmt::format("{}", limit.amount);
  if (limit.unit) return fmt::format("{}/{}", limit.amount, to_string(*limit.unit));
  return fmt::format("{}/{}", limit.amount, format_duration(limit.period));
}

}  // namespace sluice::core
