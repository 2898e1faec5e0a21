// The comparison as a picture: one lane per algorithm, time from left to right.
//
// A lane shows every request as a tick, tall and filled when it was admitted, short when rejected,
// and above them how much had been admitted within the last period, with the limit as a dashed
// line: what rises above that line is the burst an algorithm lets through.
#pragma once

#include "cli/replay/comparison.h"
#include <sluice/limit.h>

#include <string>

namespace sluice::cli {

// A complete SVG document that follows the reader's light or dark colour scheme. The same
// comparison always yields the same bytes.
[[nodiscard]] std::string picture_svg(const Comparison& comparison, const Limit& limit);

}  // namespace sluice::cli
