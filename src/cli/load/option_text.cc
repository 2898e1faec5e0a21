#include "cli/load/option_text.h"

#include "base/duration.h"
#include "base/text.h"

#include <fmt/format.h>

namespace sluice::cli {

Parsed<std::uint64_t> parse_count(std::string_view option, std::string_view text,
                                  std::uint64_t most) {
  const auto number = parse_number(text);
  if (!number || *number < 1 || *number > most) {
    return mistake(
        fmt::format("{}: {} is not a whole number from 1 to {}", option, quoted(text), most));
  }
  return *number;
}

Parsed<Nanos> parse_time_option(std::string_view option, std::string_view text) {
  Parsed<Nanos> time = parse_duration(text);
  if (!time)
    return mistake(fmt::format("{}: {}", option, time.error().message), time.error().remedy);
  if (*time <= Nanos{0}) {
    return mistake(fmt::format("{}: must be more than 0", option), "use at least 1ns");
  }
  return time;
}

}  // namespace sluice::cli
