// Fixed window: a counter that starts at zero in each window.
//
// Windows are aligned to the epoch (a multiple of the period since 1970), to the calendar of a time
// zone (day, week from Monday, month, year), or they open with a key's first request.
//
// Time base: wall for the first two, monotonic for `first_request`. A step of the wall clock
// forward starts the window it lands in. A step back stays in the window that was current, so
// nothing is counted twice; after a step of more than a minute and a window the count moves to the
// window that the clock now shows.
//
// Most admitted in any window of one period: 2 * amount, at the seam of two windows (for a calendar
// window: in any span up to the shortest such unit); 2 * amount - 1 for `first_request` (2 * amount
// with refunds).
#pragma once

#include <sluice/core/calendar.h>
#include <sluice/core/step.h>

#include <cstdint>
#include <memory>

namespace sluice::core {

struct WindowLimit {
  Cost amount = 1;
  Nanos period{0};                               // aligned to the epoch
  std::shared_ptr<const CalendarGrid> calendar;  // set: the calendar's windows instead
  bool count_rejected = false;
};

struct FirstRequestLimit {
  Cost amount = 1;
  Nanos period{1};
  bool count_rejected = false;
};

// `start` is the nanosecond at which the counted window began, on the limit's time base. All zeros
// is an idle key.
struct WindowState {
  std::int64_t start = 0;
  Cost count = 0;

  friend constexpr bool operator==(const WindowState&, const WindowState&) = default;
};

[[nodiscard]] Step<WindowState> fixed_window_step(const WindowLimit& limit, WindowState state,
                                                  WallTime now, Cost cost) noexcept;
[[nodiscard]] Step<WindowState> fixed_window_charge(const WindowLimit& limit, WindowState state,
                                                    WallTime now, Cost cost) noexcept;
[[nodiscard]] Step<WindowState> first_request_step(const FirstRequestLimit& limit,
                                                   WindowState state, MonoTime now,
                                                   Cost cost) noexcept;
[[nodiscard]] Step<WindowState> first_request_charge(const FirstRequestLimit& limit,
                                                     WindowState state, MonoTime now,
                                                     Cost cost) noexcept;

[[nodiscard]] WindowState window_refund(WindowState state, Receipt receipt, Cost amount) noexcept;

// From one amount to another over the same windows; a state whose windows change has to be carried
// over as a charge instead.
[[nodiscard]] WindowState window_convert(Cost from, Cost to, WindowState state,
                                         OnChange change) noexcept;

}  // namespace sluice::core
