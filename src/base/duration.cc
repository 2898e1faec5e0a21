#include "base/duration.h"

#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>

namespace sluice {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanos;
};

constexpr std::array kUnits{
    Unit{"w", 7LL * 24 * 3600 * 1'000'000'000},
    Unit{"d", 24LL * 3600 * 1'000'000'000},
    Unit{"h", 3600LL * 1'000'000'000},
    Unit{"m", 60LL * 1'000'000'000},
    Unit{"s", 1'000'000'000},
    Unit{"ms", 1'000'000},
    Unit{"us", 1'000},
    Unit{"ns", 1},
};

constexpr std::string_view kDurationRemedy =
    "use a whole number and one of ns, us, ms, s, m, h, d, w, as in 90s or 1h30m";

const Unit* find_unit(std::string_view name) noexcept {
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

std::size_t count_while(std::string_view text, bool (*wanted)(char)) noexcept {
  std::size_t n = 0;
  while (n < text.size() && wanted(text[n])) ++n;
  return n;
}

}  // namespace

Parsed<Nanos> parse_duration(std::string_view text) {
  if (text.empty()) return mistake("an empty length of time", std::string{kDurationRemedy});
  std::int64_t total = 0;
  std::int64_t previous_unit = std::numeric_limits<std::int64_t>::max();
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view digits = rest.substr(0, count_while(rest, is_digit));
    if (digits.empty()) {
      return mistake(fmt::format("'{}' is not a length of time", text),
                     std::string{kDurationRemedy});
    }
    rest.remove_prefix(digits.size());
    const std::string_view name =
        rest.substr(0, count_while(rest, [](char c) { return !is_digit(c); }));
    rest.remove_prefix(name.size());
    if (name.empty()) {
      return mistake(fmt::format("'{}' lacks a unit", text), std::string{kDurationRemedy});
    }
    const Unit* unit = find_unit(name);
    if (name.starts_with('.')) {
      return mistake(fmt::format("'{}' has a fraction", text),
                     "use a smaller unit, as in 1500ms for 1.5s");
    }
    if (unit == nullptr) {
      return mistake(fmt::format("unknown unit '{}' in '{}'", name, text),
                     std::string{kDurationRemedy});
    }
    if (unit->nanos >= previous_unit) {
      return mistake(fmt::format("the units of '{}' are not in descending order", text),
                     "write the largest first and each one once, as in 1h30m");
    }
    previous_unit = unit->nanos;
    const std::optional<std::uint64_t> number = parse_number(digits);
    std::int64_t part = 0;
    if (!number || *number > std::numeric_limits<std::int64_t>::max() ||
        __builtin_mul_overflow(static_cast<std::int64_t>(*number), unit->nanos, &part) ||
        __builtin_add_overflow(total, part, &total)) {
      return mistake(fmt::format("'{}' is too long a time", text), "use less than 292 years");
    }
  }
  return Nanos{total};
}

std::string format_duration(Nanos duration) {
  if (duration == Nanos{0}) return "0s";
  std::string text = duration < Nanos{0} ? "-" : "";
  std::uint64_t rest = duration < Nanos{0} ? 0 - static_cast<std::uint64_t>(duration.count())
                                           : static_cast<std::uint64_t>(duration.count());
  for (const Unit& unit : kUnits) {
    if (unit.name == "w") continue;  // days read better: 366d, not 52w2d
    const auto size = static_cast<std::uint64_t>(unit.nanos);
    if (rest < size) continue;
    text += fmt::format("{}{}", rest / size, unit.name);
    rest %= size;
  }
  return text;
}

std::string approximate_duration(Nanos duration) {
  const auto nanos = static_cast<double>(duration.count());
  if (nanos == 0) return "0s";
  constexpr std::array kScales{std::pair{86400e9, "d"}, std::pair{3600e9, "h"},
                               std::pair{60e9, "m"},    std::pair{1e9, "s"},
                               std::pair{1e6, "ms"},    std::pair{1e3, "us"}};
  for (const auto& [size, name] : kScales) {
    if (nanos < size) continue;
    const double count = nanos / size;
    // What three digits cannot hold would be written with an exponent.
    return count < 999.5 ? fmt::format("{:.3g}{}", count, name)
                         : fmt::format("{:.0f}{}", count, name);
  }
  return fmt::format("{}ns", duration.count());
}

}  // namespace sluice
