// Values of options that both kinds of load take; a mistake names its option.
#pragma once

#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <cstdint>
#include <string_view>

namespace sluice::cli {

// From 1 to `most`.
[[nodiscard]] Parsed<std::uint64_t> parse_count(std::string_view option, std::string_view text,
                                                std::uint64_t most);
// More than 0.
[[nodiscard]] Parsed<Nanos> parse_time_option(std::string_view option, std::string_view text);

}  // namespace sluice::cli
