// Lengths of time as people write them: 500ms, 90s, 1h30m, 7d.
#pragma once

#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <string>
#include <string_view>

namespace sluice {

// One or more whole numbers, each with its unit, largest first: ns, us, ms, s, m, h, d, w.
[[nodiscard]] Parsed<Nanos> parse_duration(std::string_view text);

// An exact spelling that parse_duration reads back, largest unit first: 1m30s, 366d, 1ms500us.
[[nodiscard]] std::string format_duration(Nanos duration);

// For eyes only: three significant digits and one unit, as in 1.23ms, 15m or 13.9d.
[[nodiscard]] std::string approximate_duration(Nanos duration);

}  // namespace sluice
