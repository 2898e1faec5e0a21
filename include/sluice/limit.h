// A limit: the numbers an operator writes down, before they are compiled into state and steps.
//
// Plain data. `core::compile` checks that a limit can be enforced exactly and says what to change
// when it cannot; nothing is clamped silently.
#pragma once

#include <sluice/time.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// Enumerators are spelled alike in code, configuration, metric labels and JSON.
enum class Algorithm : std::uint8_t {
  token_bucket,
  leaky_bucket,
  gcra,
  fixed_window,
  sliding_log,
  sliding_counter,
  sliding_buckets,
  concurrency,
};

enum class Refill : std::uint8_t { continuous, interval };           // token_bucket
enum class Align : std::uint8_t { epoch, calendar, first_request };  // fixed_window
enum class CalendarUnit : std::uint8_t { day, week, month, year };   // fixed_window, calendar

// What happens to a key's state when its limit is edited.
enum class OnChange : std::uint8_t {
  keep,          // the usage stays
  proportional,  // the used share of the capacity stays
  reset,         // start afresh
};

// What happens to a key that the counter table has no room for, because all keys that could be
// evicted have used a greater share of their limits.
enum class OnTableFull : std::uint8_t {
  // Count it in a sixteenth of the memory, in cells that several keys may share: it is admitted at
  // most twice what its limit admits, and may be rejected early. A concurrency limit cannot be
  // counted there: its newcomers are rejected.
  approximate,
  allow,   // admit it untracked
  reject,  // reject it
};

inline constexpr std::array kAlgorithms{
    Algorithm::token_bucket,    Algorithm::leaky_bucket, Algorithm::gcra,
    Algorithm::fixed_window,    Algorithm::sliding_log,  Algorithm::sliding_counter,
    Algorithm::sliding_buckets, Algorithm::concurrency,
};

struct Limit {
  Algorithm algorithm = Algorithm::token_bucket;
  std::uint64_t amount = 0;  // per period; in flight for `concurrency`
  Nanos period{0};           // 0 for calendar windows and for concurrency

  // An absent option takes the algorithm's default; an option that the algorithm does not have is
  // an error.
  std::optional<std::uint64_t> burst;   // buckets: capacity
  std::optional<Refill> refill;         // token_bucket
  std::optional<Align> align;           // fixed_window
  std::optional<CalendarUnit> unit;     // fixed_window, calendar
  std::optional<std::string> timezone;  // fixed_window, calendar; IANA name, default UTC
  std::optional<Nanos> bucket_width;    // sliding_buckets: width of a sub-window
  std::optional<Nanos> max_delay;       // leaky_bucket: longest time a request is queued
  std::optional<Nanos> slot_ttl;        // concurrency: life of a lease that is not renewed
  bool count_rejected = false;          // rejected requests count, too
  // Replaces another limit for one client or for a while, as overrides do: this is not an edit, so
  // the usage stays, whatever `on_change` says.
  bool stands_in = false;
};

[[nodiscard]] std::string_view to_string(Algorithm algorithm) noexcept;
[[nodiscard]] std::string_view to_string(Refill refill) noexcept;
[[nodiscard]] std::string_view to_string(Align align) noexcept;
[[nodiscard]] std::string_view to_string(CalendarUnit unit) noexcept;
[[nodiscard]] std::string_view to_string(OnChange change) noexcept;
[[nodiscard]] std::string_view to_string(OnTableFull on_table_full) noexcept;

}  // namespace sluice
