#include "base/rfc3339.h"
#include "support/models.h"
#include "support/property.h"
#include "support/traffic.h"
#include <sluice/core/calendar.h>
#include <sluice/core/cell.h>

#include <date/date.h>
#include <date/tz.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace sluice::core {
namespace {

using namespace std::chrono_literals;
using sluice::testing::at;
using sluice::testing::check_property;
using sluice::testing::later;

CalendarGrid grid(CalendarUnit unit, const std::string& zone) {
  Result<CalendarGrid> built = CalendarGrid::build(unit, zone);
  if (!built) throw std::invalid_argument(zone);
  return *std::move(built);
}

WallTime instant(std::string_view text) { return parse_rfc3339(text).value(); }

struct Example {
  CalendarUnit unit;
  std::string zone;
  std::string start;
  std::string end;
  std::string why;
};

std::vector<Example> examples() {
  using enum CalendarUnit;
  return {
      {day, "UTC", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z", "leap day"},
      {day, "UTC", "2100-02-28T00:00:00Z", "2100-03-01T00:00:00Z", "no leap day"},
      {day, "UTC", "1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z", "first day"},
      {week, "UTC", "2024-12-30T00:00:00Z", "2025-01-06T00:00:00Z", "Monday across New Year"},
      {week, "UTC", "1970-01-05T00:00:00Z", "1970-01-12T00:00:00Z", "first Monday"},
      {month, "UTC", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z", "29 days"},
      {month, "UTC", "2023-02-01T00:00:00Z", "2023-03-01T00:00:00Z", "28 days"},
      {month, "UTC", "2000-02-01T00:00:00Z", "2000-03-01T00:00:00Z", "leap century"},
      {year, "UTC", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z", "366 days"},
      {year, "UTC", "2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z", "365 days"},
      {day, "America/New_York", "2024-03-10T05:00:00Z", "2024-03-11T04:00:00Z", "23 hours"},
      {day, "America/New_York", "2024-11-03T04:00:00Z", "2024-11-04T05:00:00Z", "25 hours"},
      {month, "America/New_York", "2024-03-01T05:00:00Z", "2024-04-01T04:00:00Z", "month with DST"},
      {week, "America/New_York", "2024-03-04T05:00:00Z", "2024-03-11T04:00:00Z", "week with DST"},
      {day, "America/Sao_Paulo", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z",
       "midnight is skipped: the day starts at 01:00"},
      {day, "America/Sao_Paulo", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z",
       "the day before it has 24 hours"},
      {day, "America/Sao_Paulo", "2019-02-16T02:00:00Z", "2019-02-17T03:00:00Z",
       "23:00 happens twice"},
      {day, "America/Havana", "2023-11-05T04:00:00Z", "2023-11-06T05:00:00Z",
       "midnight happens twice: the first one counts"},
      {day, "Asia/Beirut", "2022-03-26T22:00:00Z", "2022-03-27T21:00:00Z", "midnight is skipped"},
      {day, "Pacific/Apia", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z",
       "the day before the one that never was"},
      {day, "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z",
       "the day after the one that never was"},
      {month, "Pacific/Apia", "2011-12-01T10:00:00Z", "2011-12-31T10:00:00Z",
       "30 days in December"},
      {day, "Asia/Kathmandu", "2024-06-01T18:15:00Z", "2024-06-02T18:15:00Z", "UTC+05:45"},
      {year, "Asia/Kathmandu", "2023-12-31T18:15:00Z", "2024-12-31T18:15:00Z", "UTC+05:45"},
  };
}

// A window holds its first nanosecond and its last, and neither of their neighbours.
TEST(Calendar, WindowsAreHalfOpenToTheNanosecond) {
  for (const Example& example : examples()) {
    SCOPED_TRACE(example.zone + ' ' + example.start + ": " + example.why);
    const CalendarGrid calendar = grid(example.unit, example.zone);
    const Window window{.start = instant(example.start), .end = instant(example.end)};
    EXPECT_EQ(calendar.window_at(window.start), window);
    EXPECT_EQ(calendar.window_at(window.end - 1ns), window);
    EXPECT_EQ(calendar.window_at(window.start + (window.end - window.start) / 2), window);
    EXPECT_EQ(calendar.window_at(window.end).start, window.end);
    if (window.start > WallTime{}) {
      EXPECT_EQ(calendar.window_at(window.start - 1ns).end, window.start);
    }
  }
}

date::local_days unit_start(CalendarUnit unit, date::local_days day) {
  const date::year_month_day ymd{day};
  switch (unit) {
    case CalendarUnit::day: return day;
    case CalendarUnit::week: return day - (date::weekday{day} - date::Monday);
    case CalendarUnit::month: return date::local_days{ymd.year() / ymd.month() / 1};
    case CalendarUnit::year: return date::local_days{ymd.year() / date::January / 1};
  }
  return day;
}

date::local_days next_unit(CalendarUnit unit, date::local_days start) {
  constexpr int kDays[] = {1, 7, 31, 366};  // lands in the next unit, whose start is asked for
  return unit_start(unit, start + date::days{kDays[static_cast<int>(unit)]});
}

// The instant before which a unit's first local midnight has not been.
WallTime first_instant(const date::time_zone& zone, date::local_days day) {
  return WallTime{Nanos{zone.to_sys(day, date::choose::earliest).time_since_epoch()}};
}

// The grid says of any instant what the time zone library says.
TEST(Calendar, GridAgreesWithTheTimeZoneLibrary) {
  for (const char* name :
       {"UTC", "America/New_York", "America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia",
        "Asia/Kathmandu", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"}) {
    const date::time_zone& zone = *date::locate_zone(name);
    for (const CalendarUnit unit :
         {CalendarUnit::day, CalendarUnit::week, CalendarUnit::month, CalendarUnit::year}) {
      SCOPED_TRACE(std::string{name} + ' ' + std::string{to_string(unit)});
      const CalendarGrid calendar = grid(unit, name);
      check_property(300, [&] {
        const auto last =
            static_cast<std::uint64_t>(instant("2249-12-31T00:00:00Z").time_since_epoch().count());
        const auto soon =
            static_cast<std::uint64_t>(instant("2038-01-01T00:00:00Z").time_since_epoch().count());
        const auto picked = static_cast<std::int64_t>(
            *rc::gen::oneOf(sluice::testing::between(0, soon), sluice::testing::between(0, last)));
        WallTime when{Nanos{picked}};
        // Mostly the edges themselves, and a nanosecond before.
        const Window rough = calendar.window_at(when);
        const std::uint64_t where = *sluice::testing::between(0, 2);
        if (where == 1 && rough.start > WallTime{}) when = rough.start;
        if (where == 2) when = rough.end - 1ns;

        const date::sys_time<Nanos> utc{when.time_since_epoch()};
        date::local_days start = unit_start(unit, date::floor<date::days>(zone.to_local(utc)));
        if (first_instant(zone, next_unit(unit, start)) <= when) start = next_unit(unit, start);
        const Window expected{.start = first_instant(zone, start),
                              .end = first_instant(zone, next_unit(unit, start))};
        RC_ASSERT(calendar.window_at(when) == expected);
      });
    }
  }
}

TEST(Calendar, WeeksStartOnMonday) {
  const CalendarGrid calendar = grid(CalendarUnit::week, "Europe/Berlin");
  check_property(1000, [&] {
    const WallTime when{Nanos{static_cast<std::int64_t>(*sluice::testing::between(
        0,
        static_cast<std::uint64_t>(instant("2037-01-01T00:00:00Z").time_since_epoch().count())))}};
    const date::sys_time<Nanos> start{calendar.window_at(when).start.time_since_epoch()};
    const auto local = date::locate_zone("Europe/Berlin")->to_local(start);
    RC_ASSERT(date::weekday{date::floor<date::days>(local)} == date::Monday);
    RC_ASSERT(local.time_since_epoch() % date::days{1} == 0ns);
  });
}

TEST(Calendar, UnknownZoneIsNotFound) {
  for (const char* zone : {"Mars/Olympus", "", "Europe/", "../../etc/passwd"}) {
    const Result<CalendarGrid> built = CalendarGrid::build(CalendarUnit::day, zone);
    ASSERT_FALSE(built.has_value()) << zone;
    EXPECT_EQ(built.error().code, Errc::not_found) << zone;
  }
}

// Grids are the same when their windows are: that is when limits may share counters.
TEST(Calendar, GridsAreEqualWhereTheirWindowsAre) {
  EXPECT_EQ(grid(CalendarUnit::day, "UTC"), grid(CalendarUnit::day, "Etc/UTC"));
  EXPECT_NE(grid(CalendarUnit::day, "UTC"), grid(CalendarUnit::day, "Europe/Berlin"));
  EXPECT_NE(grid(CalendarUnit::day, "UTC"), grid(CalendarUnit::week, "UTC"));
}

// A limit per calendar unit answers like a map of windows over the same calendar.
TEST(Calendar, CalendarWindowsAnswerLikeAMapOfWindows) {
  for (const char* zone : {"UTC", "America/New_York", "Pacific/Apia"}) {
    for (const CalendarUnit unit :
         {CalendarUnit::day, CalendarUnit::week, CalendarUnit::month, CalendarUnit::year}) {
      const CalendarGrid calendar = grid(unit, zone);
      Limit limit{.algorithm = Algorithm::fixed_window, .amount = 4};
      limit.align = Align::calendar;
      limit.unit = unit;
      limit.timezone = zone;
      const CompiledLimit numbers = sluice::testing::compiled(limit);
      check_property(100, [&] {
        const auto model = sluice::testing::model_of(limit, [&](std::int64_t now) {
          const Window window = calendar.window_at(WallTime{Nanos{now}});
          return std::pair{window.start.time_since_epoch().count(),
                           window.end.time_since_epoch().count()};
        });
        sluice::testing::Scale scale = sluice::testing::scale_of(limit);
        std::int64_t now = *sluice::testing::starts(scale.period);
        Cell cell;
        for (const sluice::testing::Beat& beat : *sluice::testing::traffic(scale)) {
          now = later(now, beat.gap);
          RC_ASSERT(cell.decide(numbers, at(now), beat.cost).decision ==
                    model->decide(now, beat.cost));
        }
      });
    }
  }
}

}  // namespace
}  // namespace sluice::core
