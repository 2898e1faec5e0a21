// What the numbers of a run say; the same for the report, the JSON and the plot.
#pragma once

#include "cli/load/http/conduct.h"
#include "cli/load/http/plan.h"

#include <cstdint>
#include <optional>

namespace sluice::cli {

struct ClientFindings {
  std::uint64_t busiest = 0;  // counted from 1
  std::uint64_t most = 0;     // admitted of that one
  std::uint64_t least = 0;
  double mean = 0;
};
[[nodiscard]] ClientFindings find_clients(const Tally& tally) noexcept;

// Whether more of any client was admitted than the expected limit allows in the time between the
// first request and the last answer. Nothing was expected: nothing.
struct Verdict {
  std::uint64_t most_allowed = 0;
  std::uint64_t most_admitted = 0;
  [[nodiscard]] bool kept() const noexcept { return most_admitted <= most_allowed; }
};
[[nodiscard]] std::optional<Verdict> judge(const HttpPlan& plan, const Tally& tally) noexcept;

// Beyond this the generator is too slow for what it was asked, and measures itself.
inline constexpr Nanos kLatenessMax{std::chrono::milliseconds{5}};
[[nodiscard]] bool kept_schedule(const Tally& tally) noexcept;

// Of all clients together: the rate of the expected limit, or else the strictest limit that the
// server stated.
[[nodiscard]] std::optional<double> limit_per_second(const HttpPlan& plan, const Tally& tally);

[[nodiscard]] double per_second(double count, Nanos time) noexcept;

}  // namespace sluice::cli
