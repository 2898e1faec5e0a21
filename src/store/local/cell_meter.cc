#include "store/local/cell_meter.h"

#include <sluice/core/compiled_limit.h>
#include <sluice/int128.h>

#include <algorithm>
#include <bit>
#include <chrono>

namespace sluice::store {
namespace {

constexpr std::int64_t kTicksPerNano = std::int64_t{1} << kCellTickBits;

// A key's own cell has 48 bits for an instant; levels take up to 36 of them.
constexpr int kLevelBits = 36;

// The longest calendar window of a unit, with an hour for the change of the clocks.
Nanos longest_window(CalendarUnit unit) noexcept {
  switch (unit) {
    case CalendarUnit::day: return std::chrono::hours{25};
    case CalendarUnit::week: return std::chrono::hours{24 * 7 + 1};
    case CalendarUnit::month: return std::chrono::hours{24 * 31 + 1};
    case CalendarUnit::year: break;
  }
  return std::chrono::hours{24 * 366 + 1};
}

std::int64_t period_ticks(const Limit& limit) noexcept {
  const Nanos period = limit.period > Nanos{0}
                           ? limit.period
                           : longest_window(limit.unit.value_or(CalendarUnit::year));
  return period.count() * kTicksPerNano;
}

// The level falls continuously, so that a cell can follow it exactly. Other limits give back many
// units at one instant.
bool drains_continuously(const Limit& limit) noexcept {
  switch (limit.algorithm) {
    case Algorithm::token_bucket: return limit.refill != Refill::interval;
    case Algorithm::leaky_bucket:
    case Algorithm::gcra: return true;
    case Algorithm::fixed_window:
    case Algorithm::sliding_log:
    case Algorithm::sliding_counter:
    case Algorithm::sliding_buckets:
    case Algorithm::concurrency: break;
  }
  return false;
}

// Admits no more than its amount in any period, wherever the period begins.
bool is_sliding_window(const Limit& limit) noexcept {
  return limit.algorithm == Algorithm::sliding_log || limit.algorithm == Algorithm::sliding_buckets;
}

std::int64_t rounded_up_to_bits(std::int64_t ticks, unsigned shift) noexcept {
  return ceil_div(ticks, std::int64_t{1} << shift) << shift;
}

unsigned shift_for(std::int64_t ticks) noexcept {
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(ticks)));
  return static_cast<unsigned>(std::max(bits - kLevelBits, 0));
}

// Per second and minute, per hour, per day and above: each has a shared cell of its own, so that a
// flood under a day quota does not block keys whose limit is per second.
std::uint8_t drain_range(std::int64_t ticks) noexcept {
  const Nanos drain{ticks / kTicksPerNano};
  if (drain <= std::chrono::minutes{3}) return 0;
  return drain <= std::chrono::hours{3} ? 1 : 2;
}

}  // namespace

// Units round up, so that no limit drains faster than it may. They round to the resolution of an
// own cell, so that a burst of units is exactly the capacity and the last unit of a limit fits.
CellMeter CellMeter::of(const Limit& limit) noexcept {
  if (limit.algorithm == Algorithm::concurrency) return {};
  const bool continuous = drains_continuously(limit);
  const auto burst = static_cast<std::int64_t>(core::capacity(limit));
  const auto written = static_cast<std::int64_t>(limit.amount);
  // A bucket that is refilled by interval never gives back more than it holds.
  const std::int64_t amount = continuous ? written : std::min(written, burst);
  const std::int64_t period = period_ticks(limit);
  const std::int64_t queue = limit.max_delay.value_or(Nanos{0}).count() * kTicksPerNano;

  const std::int64_t unit = ceil_div(continuous ? period : 2 * period, amount);
  const unsigned shift = shift_for(burst * unit + queue);
  CellMeter meter{.burst = static_cast<core::Cost>(burst),
                  .shift = static_cast<std::uint8_t>(shift)};
  meter.own.unit = rounded_up_to_bits(unit, shift);
  meter.own.capacity = burst * meter.own.unit;
  meter.own.full = meter.own.capacity + (queue >> shift << shift);
  meter.range = drain_range(meter.own.capacity);

  meter.shared = meter.own;
  if (is_sliding_window(limit)) {
    const std::int64_t quarter = ceil_div(written, std::int64_t{4});
    meter.shared.unit = ceil_div(period, quarter);
    meter.shared.capacity = meter.shared.full = quarter * meter.shared.unit;
  }
  return meter;
}

}  // namespace sluice::store
