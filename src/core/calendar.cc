#include <sluice/core/calendar.h>

#include <date/date.h>
#include <date/tz.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace sluice::core {
namespace {

using date::local_days;

// From the start of 1969 in every zone to the end of what 64-bit nanoseconds can name.
constexpr date::year kFirstYear{1969};
constexpr local_days kLastDay{date::year{2262} / date::April / 9};

local_days first_day(CalendarUnit unit) noexcept {
  const local_days new_year{kFirstYear / date::January / 1};
  if (unit != CalendarUnit::week) return new_year;
  return new_year - (date::weekday{new_year} - date::Monday);
}

local_days next_day(CalendarUnit unit, local_days day) noexcept {
  const date::year_month_day ymd{day};
  switch (unit) {
    case CalendarUnit::day: return day + date::days{1};
    case CalendarUnit::week: return day + date::weeks{1};
    case CalendarUnit::month: return local_days{(ymd.year() / ymd.month() + date::months{1}) / 1};
    case CalendarUnit::year: return local_days{(ymd.year() + date::years{1}) / date::January / 1};
  }
  return day;
}

// The first instant of a local day. `range` is the stretch of constant offset that the previous
// answer fell into; days come in order, so most of them are answered by it alone.
date::sys_seconds first_instant(const date::time_zone& zone, local_days day,
                                date::sys_info& range) {
  const date::sys_seconds guess{day.time_since_epoch() - range.offset};
  if (range.begin + date::days{2} < guess && guess + date::days{2} < range.end) return guess;
  const date::sys_seconds exact = zone.to_sys(day, date::choose::earliest);
  range = zone.get_info(exact);
  return exact;
}

std::vector<WallTime> edges_of(const date::time_zone& zone, CalendarUnit unit) {
  std::vector<WallTime> edges;
  date::sys_info range{};
  for (local_days day = first_day(unit); day <= kLastDay; day = next_day(unit, day)) {
    edges.emplace_back(Nanos{first_instant(zone, day, range).time_since_epoch()});
  }
  // The last window is open-ended: nothing after it can be named.
  edges.push_back(WallTime::max());
  return edges;
}

}  // namespace

CalendarGrid::CalendarGrid(std::vector<WallTime> edges) noexcept : edges_(std::move(edges)) {
  const std::size_t last = edges_.size() - 2;
  const auto windows = static_cast<std::int64_t>(last);
  // Divided first: the grid spans more nanoseconds than 63 bits count.
  mean_ = edges_[last].time_since_epoch() / windows - edges_[0].time_since_epoch() / windows;
}

Result<CalendarGrid> CalendarGrid::build(CalendarUnit unit, const std::string& zone) {
  try {
    const date::time_zone* found = date::locate_zone(zone);
    return CalendarGrid{edges_of(*found, unit)};
  } catch (const std::runtime_error&) {
    // The library throws the same type for both; UTC is in every database.
    try {
      (void)date::locate_zone("UTC");
    } catch (const std::exception&) {
      return tl::unexpected(Error{.code = Errc::io, .where = "time zone database"});
    }
    return tl::unexpected(Error{.code = Errc::not_found, .where = "time zone"});
  }
}

Window CalendarGrid::window_at(WallTime at) const noexcept {
  const auto last = static_cast<std::int64_t>(edges_.size()) - 2;
  const std::int64_t guess = at.time_since_epoch() / mean_ - edges_[0].time_since_epoch() / mean_;
  std::int64_t i = std::clamp<std::int64_t>(guess, 0, last);
  const auto edge = [this](std::int64_t n) { return edges_[static_cast<std::size_t>(n)]; };
  while (i > 0 && at < edge(i)) --i;
  while (i < last && at >= edge(i + 1)) ++i;
  return {.start = edge(i), .end = edge(i + 1)};
}

Nanos CalendarGrid::shortest() const noexcept {
  Nanos least = Nanos::max();
  for (std::size_t i = 0; i + 2 < edges_.size(); ++i) {
    const Nanos width = edges_[i + 1] - edges_[i];
    if (width > Nanos{0}) least = std::min(least, width);
  }
  return least;
}

}  // namespace sluice::core
