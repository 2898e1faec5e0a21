// What may be written in a configuration file besides rules.
#pragma once

#include "config/grammar.h"

namespace sluice::app {

[[nodiscard]] const config::Section& configuration_section();
[[nodiscard]] const config::Section& state_section();
[[nodiscard]] const config::Section& clients_section();
[[nodiscard]] const config::Section& api_keys_section();
[[nodiscard]] const config::Section& tokens_section();
[[nodiscard]] const config::Section& geo_section();

extern const config::Format kMemoryFormat;  // 64MiB
[[nodiscard]] Parsed<std::uint64_t> parse_memory(std::string_view text);

}  // namespace sluice::app
