// Instants as RFC 3339 writes them: 2022-01-20T00:13:05.25Z, 2022-01-20 01:13:05+01:00. And as logs
// do.
#pragma once

#include "base/text_writer.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <string>
#include <string_view>

namespace sluice {

// From 1970 to the end of 2249, to the nanosecond. A leap second is the first instant of the next
// minute.
[[nodiscard]] Parsed<WallTime> parse_rfc3339(std::string_view text);

// In UTC, with as many fraction digits as it takes.
[[nodiscard]] std::string format_rfc3339(WallTime time);
void write_rfc3339(TextWriter& writer, WallTime time) noexcept;

// In UTC, as access logs have it: 20/Jan/2022:00:13:05 +0000.
void write_log_time(TextWriter& writer, WallTime time) noexcept;

}  // namespace sluice
