// Calendar windows: days, weeks, months and years of a time zone.
//
// A grid is the list of all edges between 1969 and 2262, made once where rules are compiled;
// looking a window up is arithmetic on that list and touches no time zone data. Immutable,
// thread-safe.
//
// An edge is the first instant of a local day. Where daylight saving skips midnight, that is the
// instant of the change; where midnight happens twice, the first one. Debian's time zone files list
// daylight-saving changes up to 2037; later years keep the zone's last offset.
#pragma once

#include <sluice/limit.h>
#include <sluice/result.h>
#include <sluice/time.h>

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::core {

struct Window {
  WallTime start;
  WallTime end;

  friend constexpr bool operator==(const Window&, const Window&) = default;
};

class CalendarGrid {
 public:
  // Fails with `not_found` when the zone is unknown, `io` when there is no time zone database.
  [[nodiscard]] static Result<CalendarGrid> build(CalendarUnit unit, const std::string& zone);

  // The window that contains an instant from 1970 on.
  [[nodiscard]] Window window_at(WallTime at) const noexcept;

  // The shortest window of all; days differ with daylight saving, months by themselves. Days that a
  // zone skipped altogether do not count.
  [[nodiscard]] Nanos shortest() const noexcept;

  // Limits share counters only over the same windows.
  friend bool operator==(const CalendarGrid&, const CalendarGrid&) = default;

 private:
  explicit CalendarGrid(std::vector<WallTime> edges) noexcept;

  std::vector<WallTime> edges_;  // ascending; edges_[i] starts window i
  Nanos mean_{1};                // average width, for a first guess that is off by a few at most
};

}  // namespace sluice::core
