// When the requests of a constant rate start.
#pragma once

#include <sluice/diagnostic.h>
#include <sluice/int128.h>
#include <sluice/time.h>

#include <chrono>
#include <cstdint>
#include <string_view>

namespace sluice::cli {

inline constexpr std::uint64_t kRateMax = 10'000'000;  // requests per second

// So many requests in every period, evenly. Each start is computed from its number, so that nothing
// drifts. A value.
struct Schedule {
  std::uint64_t amount = 1;
  Nanos period{std::chrono::seconds{1}};

  // Of request n, counted from 0, after the beginning; rounded down.
  [[nodiscard]] constexpr Nanos start_of(std::uint64_t n) const noexcept {
    const Uint128 whole = Uint128{n} * static_cast<std::uint64_t>(period.count());
    return Nanos{static_cast<std::int64_t>(whole / amount)};
  }

  // How many requests start before this much time has passed.
  [[nodiscard]] constexpr std::uint64_t starts_within(Nanos time) const noexcept {
    const Uint128 whole = Uint128{amount} * static_cast<std::uint64_t>(time.count());
    return static_cast<std::uint64_t>(
        ceil_div(whole, Uint128{static_cast<std::uint64_t>(period.count())}));
  }

  [[nodiscard]] double per_second() const noexcept {
    return static_cast<double>(amount) / std::chrono::duration<double>(period).count();
  }
};

// `2000/s`, `30/1m`, or `2000` for so many a second.
[[nodiscard]] Parsed<Schedule> parse_rate(std::string_view text);

}  // namespace sluice::cli
