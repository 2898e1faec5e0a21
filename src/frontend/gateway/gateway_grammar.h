// The grammar of the gateway, its upstreams and its routes.
#pragma once

#include "config/formats.h"
#include "config/grammar.h"

#include <vector>

namespace sluice::gateway {

[[nodiscard]] config::Key listen_key();              // under `listen`
[[nodiscard]] std::vector<config::Key> file_keys();  // of the top level

[[nodiscard]] const config::Section& listener_section();
[[nodiscard]] const config::Section& upstreams_section();
[[nodiscard]] const config::Section& upstream_section();
[[nodiscard]] const config::Section& server_section();
[[nodiscard]] const config::Section& upstream_tls_section();
[[nodiscard]] const config::Section& route_section();
[[nodiscard]] const config::Section& gateway_section();
[[nodiscard]] const config::Section& tls_section();
[[nodiscard]] const config::Section& tracing_section();
[[nodiscard]] const config::Section& rate_headers_section();
[[nodiscard]] const config::Section& renamed_section();
[[nodiscard]] const config::Section& certificate_section();

extern const config::Format kOneHostFormat;  // api.example.com, without its subdomains

}  // namespace sluice::gateway
