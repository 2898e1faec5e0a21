#include "frontend/gateway/gateway_frontend.h"

#include "base/read_file.h"
#include "config/secret_file.h"
#include "frontend/gateway/connection_counts.h"
#include "frontend/gateway/gateway.h"
#include "frontend/gateway/gateway_config.h"
#include "frontend/gateway/gateway_grammar.h"
#include "frontend/metrics/request_meters.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::gateway {
namespace {

using frontend::Frontend;
using frontend::FrontendConfig;
using frontend::FrontendReport;
using frontend::FrontendWorker;
using frontend::LoadParts;

constexpr std::size_t kTlsFileBytesMax = std::size_t{16} << 20U;

const GatewayConfig& own(const FrontendConfig& config) {
  return static_cast<const GatewayConfig&>(config);
}

// ---- one worker -------------------------------------------------------------------------------

frontend::UpstreamStatus status_of(const UpstreamGroup& group, MonoTime now) {
  frontend::UpstreamStatus status{.name = group.options().name, .servers = {}};
  for (const auto& server : group.servers()) {
    status.servers.push_back({.address = server->name(),
                              .ejected_by = server->is_ejected(now) ? 1U : 0U,
                              .addresses = server->addresses().all().size(),
                              .addresses_ejected = server->addresses().ejected(now),
                              .in_use = server->in_use(),
                              .idle = server->idle(),
                              .failures = server->failures()});
  }
  return status;
}

class GatewayWorker final : public FrontendWorker {
 public:
  GatewayWorker(const Gateway::Parts& parts, const GatewayConfig& config)
      : loop_(parts.loop), gateway_(parts, config.options), listeners_(config.listeners) {
    gateway_.use_tls(config.tls);
  }

  void accept(net::Accepted accepted, const frontend::Entrance& entrance) override {
    const bool is_listed = entrance.listener != frontend::Entrance::kUnlisted;
    gateway_.accept(std::move(accepted),
                    {.port = entrance.port,
                     .proxy_protocol = is_listed && listeners_[entrance.listener].proxy_protocol});
  }
  void use(const std::shared_ptr<const FrontendConfig>& config) override {
    gateway_.use(own(*config).options);
    gateway_.use_tls(own(*config).tls);
  }
  bool evict_idle() override { return gateway_.evict_idle(); }
  void drain() override { gateway_.drain(); }
  [[nodiscard]] std::size_t connections() const noexcept override { return gateway_.connections(); }
  [[nodiscard]] FrontendReport report() const override {
    const GatewayCounts& counts = gateway_.counts();
    FrontendReport report{.connections = gateway_.connections(),
                          .connections_rejected = counts.connections_rejected,
                          .evicted = counts.evicted,
                          .spares = gateway_.spares(),
                          .in_flight = gateway_.in_flight(),
                          .queued = gateway_.queued(),
                          .headers_dropped = counts.headers_dropped,
                          .upstreams = {}};
    for (const auto& group : gateway_.routing()->groups) {
      report.upstreams.push_back(status_of(*group, loop_.now().mono));
    }
    return report;
  }

 private:
  net::EventLoop& loop_;
  Gateway gateway_;
  const std::vector<GatewayListener> listeners_;  // with open sockets
};

// ---- files ------------------------------------------------------------------------------------

// Reports all missing files, not only the first.
bool can_read_all(const net::TlsServerOptions& options, const config::NamedFiles& files,
                  config::Diagnostics& diagnostics) {
  bool can = true;
  const auto look_at = [&](const std::string& path) {
    if (path.empty()) return;
    auto read = read_file(path, kTlsFileBytesMax);
    if (read) return;
    files.error(path, std::move(read.error()), diagnostics);
    can = false;
  };
  for (const net::CertificateFiles& one : options.certificates) {
    look_at(one.cert_file);
    look_at(one.key_file);
  }
  look_at(options.client_ca_file);
  return can;
}

// Null without TLS, and after an error.
std::shared_ptr<const net::TlsServer> load_tls(std::optional<net::TlsServerOptions> options,
                                               const LoadParts& parts,
                                               config::Diagnostics& diagnostics) {
  if (!options) return nullptr;
  for (const net::CertificateFiles& files : options->certificates) {
    config::warn_of_exposure(files.key_file, diagnostics);
  }
  if (!can_read_all(*options, parts.files, diagnostics)) return nullptr;
  options->tickets = parts.tickets;
  auto loaded = net::TlsServer::load(*options);
  if (!loaded) parts.files.error(std::move(loaded.error()), diagnostics);
  return loaded ? *std::move(loaded) : nullptr;
}

// Requests to an upstream are counted under its name.
std::shared_ptr<const GatewayOptions> metered(GatewayOptions options, metrics::Registry& registry) {
  for (UpstreamOptions& upstream : options.upstreams) {
    upstream.meters = std::make_shared<const frontend::UpstreamMeters>(registry, upstream.name);
  }
  return std::make_shared<const GatewayOptions>(std::move(options));
}

// ---- one server -------------------------------------------------------------------------------

class GatewayFrontend final : public Frontend {
 public:
  [[nodiscard]] std::shared_ptr<const FrontendConfig> load(
      const std::shared_ptr<const FrontendConfig>& read, const FrontendConfig* /*in_force*/,
      const LoadParts& parts, config::Diagnostics& diagnostics) override {
    auto loaded = std::make_shared<GatewayConfig>(own(*read));
    loaded->tls = load_tls(loaded->tls_files, parts, diagnostics);
    return loaded;
  }
  // Routes read paths as the rules do.
  [[nodiscard]] std::shared_ptr<const FrontendConfig> with_paths(
      const std::shared_ptr<const FrontendConfig>& in_force, const FrontendConfig& read) override {
    auto next = std::make_shared<GatewayConfig>(own(*in_force));
    next->options = own(read).options;
    return next;
  }
  [[nodiscard]] std::shared_ptr<const FrontendConfig> accepted(
      std::shared_ptr<const FrontendConfig> next, metrics::Registry& registry) override {
    auto metered_one = std::make_shared<GatewayConfig>(own(*next));
    metered_one->options = metered(*metered_one->options, registry);
    return metered_one;
  }
  [[nodiscard]] std::vector<std::string> replaced_upstreams(
      const FrontendConfig& before, const FrontendConfig& now) const override {
    return gateway::replaced_upstreams(own(before).options->upstreams, own(now).options->upstreams);
  }
  [[nodiscard]] std::unique_ptr<FrontendWorker> on_worker(
      const frontend::WorkerParts& parts,
      const std::shared_ptr<const FrontendConfig>& config) override {
    const Gateway::Parts of_gateway{.loop = parts.loop,
                                    .resolver = parts.resolver,
                                    .worker = parts.decider,
                                    .observer = parts.observer,
                                    .connection_counts = connection_counts_};
    return std::make_unique<GatewayWorker>(of_gateway, own(*config));
  }

 private:
  ConnectionCounts connection_counts_;  // shared by all workers
};

}  // namespace

const frontend::FrontendKind& kind() {
  static const frontend::FrontendKind kKind{
      .placement = frontend::Placement::workers,
      .listen = listen_key(),
      .keys = file_keys(),
      .read = read_config,
      .open = []() -> std::unique_ptr<Frontend> { return std::make_unique<GatewayFrontend>(); }};
  return kKind;
}

}  // namespace sluice::gateway
