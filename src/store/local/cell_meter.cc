#include "store/local/cell_meter.h"

#include <sluice/core/compiled_limit.h>
#include <sluice/int128.h>

#include <algorithm>
#include <bit>
#include <chrono>

namespace sluice::store {
namespace {

constexpr std::int64_t kTicksPerNano = std::int64_t{1} << kCellTickBits;

// A key's own cell has 48 bits for an instant; levels take up to these.
constexpr int kLevelBits = 36;

// The longest that a calendar window lasts, with an hour for the change of the clocks.
Nanos longest_window(CalendarUnit unit) noexcept {
  switch (unit) {
    case CalendarUnit::day: return std::chrono::hours{25};
    case CalendarUnit::week: return std::chrono::hours{24 * 7 + 1};
    case CalendarUnit::month: return std::chrono::hours{24 * 31 + 1};
    case CalendarUnit::year: break;
  }
  return std::chrono::hours{24 * 366 + 1};
}

Nanos meter_period(const Limit& limit) noexcept {
  return limit.period > Nanos{0} ? limit.period
                                 : longest_window(limit.unit.value_or(CalendarUnit::year));
}

// Per second and minute, per hour, per day and above: each has a shared cell of its own, so that a
// flood under a day quota does not block keys whose limit is per second.
std::uint8_t drain_range(Nanos drain) noexcept {
  if (drain <= std::chrono::minutes{2}) return 0;
  return drain <= std::chrono::hours{2} ? 1 : 2;
}

}  // namespace

CellMeter CellMeter::of(const Limit& limit) noexcept {
  if (limit.algorithm == Algorithm::concurrency) return {};
  const std::int64_t ticks = meter_period(limit).count() * kTicksPerNano;
  const auto burst = static_cast<std::int64_t>(core::capacity(limit));
  CellMeter meter{.unit = ceil_div(ticks, static_cast<std::int64_t>(limit.amount)),
                  .burst = static_cast<core::Cost>(burst)};
  meter.capacity = burst * meter.unit;
  meter.full = meter.capacity + limit.max_delay.value_or(Nanos{0}).count() * kTicksPerNano;
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(meter.full)));
  meter.shift = static_cast<std::uint8_t>(std::max(bits - kLevelBits, 0));
  meter.range = drain_range(Nanos{meter.capacity / kTicksPerNano});
  return meter;
}

}  // namespace sluice::store
