// A run over time, as a picture: offered, admitted and rejected requests, and latencies.
#pragma once

#include "cli/load/http/conduct.h"
#include "cli/load/http/plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::cli {

// A complete SVG document on a white card, readable on any background.
[[nodiscard]] std::string plot_svg(const HttpPlan& plan, const HttpRun& run);

// Over how many points of that width rates are drawn. A point may be shorter than the time between
// two requests that a limit admits: one request in it would look like a rate far above the limit.
// `rate` is the slowest of interest, per second; 0: unknown.
[[nodiscard]] std::size_t points_of_a_rate(double rate, Nanos point_width) noexcept;

// Round values from 0 up to or above `top`, about five of them, at least two. For axes.
[[nodiscard]] std::vector<double> axis_ticks(double top);

}  // namespace sluice::cli
