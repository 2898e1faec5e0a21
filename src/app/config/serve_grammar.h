// What may be written about listeners, upstreams and routes.
#pragma once

#include "config/formats.h"
#include "config/grammar.h"

namespace sluice::app {

using config::kTimeFormat;

[[nodiscard]] const config::Section& listen_section();
[[nodiscard]] const config::Section& listener_section();
[[nodiscard]] const config::Section& upstreams_section();
[[nodiscard]] const config::Section& upstream_section();
[[nodiscard]] const config::Section& server_section();
[[nodiscard]] const config::Section& upstream_tls_section();
[[nodiscard]] const config::Section& route_section();
[[nodiscard]] const config::Section& gateway_section();
[[nodiscard]] const config::Section& access_log_section();
[[nodiscard]] const config::Section& admin_section();
[[nodiscard]] const config::Section& drain_section();
[[nodiscard]] const config::Section& tls_section();
[[nodiscard]] const config::Section& tracing_section();
[[nodiscard]] const config::Section& rate_headers_section();
[[nodiscard]] const config::Section& renamed_section();
[[nodiscard]] const config::Section& certificate_section();

extern const config::Format kEndpointFormat;  // 127.0.0.1:8080
extern const config::Format kOneHostFormat;   // api.example.com, and not all below it

}  // namespace sluice::app
