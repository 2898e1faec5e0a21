// The grammar of a configuration file, except for listeners, upstreams and routes.
#pragma once

#include "config/grammar.h"
#include <sluice/address.h>
#include <sluice/diagnostic.h>

#include <string_view>
#include <vector>

namespace sluice::embed {

// The top level of the file; server_keys as in server_keys.h, with their shapes.
[[nodiscard]] config::Section configuration_section_with(std::vector<config::Key> server_keys);
// The same with any values for the server's keys.
[[nodiscard]] const config::Section& engine_section();
[[nodiscard]] const config::Section& state_section();
[[nodiscard]] const config::Section& clients_section();
[[nodiscard]] const config::Section& api_keys_section();
[[nodiscard]] const config::Section& jwt_section();
[[nodiscard]] const config::Section& geo_section();
[[nodiscard]] const config::Section& lists_section();
[[nodiscard]] const config::Section& list_entry_section();
[[nodiscard]] const config::Section& override_section();
[[nodiscard]] const config::Section& rules_from_section();

extern const config::Format kSubjectFormat;  // ip=10.0.0.0/8, user=ann
extern const config::Format kProxyFormat;    // 10.0.0.0/8, unix
[[nodiscard]] Parsed<IpRange> parse_proxy(std::string_view text);

}  // namespace sluice::embed
