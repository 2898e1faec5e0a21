#include "config/formats.h"

#include "base/duration.h"
#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string>
#include <utility>

namespace sluice::config {
namespace {

// What nothing means differs from one time to the next: at once, or never. Where it is useful, the
// key says so and takes any duration.
std::optional<Diagnostic> check_time(std::string_view text) {
  const Parsed<Nanos> time = parse_duration(text);
  if (!time) return time.error();
  if (*time >= std::chrono::milliseconds{1}) return std::nullopt;
  return Diagnostic{std::string{text} + " leaves no time at all", "write at least 1ms, as in 10s"};
}

}  // namespace

Parsed<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, unsigned>, 3> kUnits{
      {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}};
  for (const auto& [unit, bits] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto amount = parse_number(text.substr(0, text.size() - unit.size()));
    if (amount && *amount > 0 && *amount < std::uint64_t{1} << (44 - bits)) return *amount << bits;
  }
  return mistake(fmt::format("{} is no size", sluice::quoted(text)),
                 "write a number and KiB, MiB or GiB, as in 64MiB");
}

const Format kSizeFormat{"SIZE", "^[0-9]+(KiB|MiB|GiB)$", mistake_of<parse_size>};
const Format kTimeFormat{"DURATION", "^([0-9]+(ns|us|ms|s|m|h|d|w))+$", check_time};

}  // namespace sluice::config
