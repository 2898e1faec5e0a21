#include "cli/load/schedule.h"

#include "base/characters.h"
#include "base/duration.h"
#include "base/text.h"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace sluice::cli {
namespace {

// `s` is short for `1s`.
Parsed<Nanos> parse_period(std::string_view text) {
  const bool has_number = text.empty() || !is_letter(text.front());
  return parse_duration(has_number ? std::string{text} : "1" + std::string{text});
}

}  // namespace

Parsed<Schedule> parse_rate(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return mistake(fmt::format("{} is no rate: {}", quoted(text), why),
                   "write requests per time, as in 2000/s or 30/1m");
  };
  const std::size_t slash = text.find('/');
  const std::optional<std::uint64_t> amount = parse_number(text.substr(0, slash));
  if (!amount || *amount < 1) return wrong("the amount is not a whole number above 0");
  Schedule schedule{.amount = *amount};
  if (slash != std::string_view::npos) {
    const Parsed<Nanos> period = parse_period(text.substr(slash + 1));
    if (!period) return wrong(period.error().message);
    if (*period <= Nanos{0}) return wrong("the time has to be more than 0");
    schedule.period = *period;
  }
  if (schedule.per_second() > static_cast<double>(kRateMax)) {
    return wrong(fmt::format("more than {} per second", kRateMax));
  }
  return schedule;
}

}  // namespace sluice::cli
