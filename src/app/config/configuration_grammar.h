// What may be written in a configuration file besides rules.
#pragma once

#include "config/formats.h"
#include "config/grammar.h"
#include <sluice/address.h>
#include <sluice/diagnostic.h>

#include <optional>
#include <string_view>

namespace sluice::app {

using config::kSizeFormat;
using config::kTimeFormat;
using config::mistake_of;
using config::parse_size;

[[nodiscard]] const config::Section& configuration_section();
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

}  // namespace sluice::app
