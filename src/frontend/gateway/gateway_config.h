// The gateway's configuration: its listeners, upstreams, routes, limits and TLS.
#pragma once

#include "config/diagnostics.h"
#include "frontend/frontend.h"
#include "frontend/frontend_config.h"
#include "frontend/gateway/gateway_options.h"
#include "net/endpoint.h"
#include "net/tls_server.h"
#include <sluice/diagnostic.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sluice::gateway {

struct GatewayListener {
  net::Endpoint endpoint;
  bool proxy_protocol = false;

  friend bool operator==(const GatewayListener&, const GatewayListener&) = default;
};

// Immutable once read.
struct GatewayConfig final : frontend::FrontendConfig {
  std::vector<GatewayListener> listeners;  // as `listen`, with the options of each
  std::shared_ptr<const GatewayOptions> options = std::make_shared<const GatewayOptions>();
  std::optional<net::TlsServerOptions> tls_files;  // of its listeners; nothing: plain
  std::shared_ptr<const net::TlsServer> tls;       // loaded from them
  bool lacks_descriptors = false;                  // for the default number of connections

  [[nodiscard]] bool listens_like(const FrontendConfig& other) const override;
  // Fewer connections are accepted than by default, and the file states no number.
  [[nodiscard]] std::optional<Diagnostic> start_warning() const override;
};

// The gateway's part of a configuration.
[[nodiscard]] const GatewayConfig& config_in(const frontend::FrontendConfigs& configs);

[[nodiscard]] std::shared_ptr<const frontend::FrontendConfig> read_config(
    const frontend::Written& written, config::Diagnostics& diagnostics);

// For how many connections of each worker there are file descriptors; at least one.
[[nodiscard]] std::uint32_t connections_within(std::uint64_t descriptors,
                                               unsigned workers) noexcept;

}  // namespace sluice::gateway
