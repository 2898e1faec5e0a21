// What a server needs besides rules: where to listen, where to pass requests on.
#pragma once

#include "config/diagnostics.h"
#include "config/grammar.h"
#include "config/named_files.h"
#include "frontend/gateway/gateway_options.h"
#include "net/endpoint.h"
#include "net/tls_server.h"
#include "rules/rule.h"
#include <sluice/time.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::app {

using config::NamedFiles;

struct GatewayListener {
  net::Endpoint endpoint;
  bool proxy_protocol = false;

  friend bool operator==(const GatewayListener&, const GatewayListener&) = default;
};

struct ListenConfig {
  std::vector<GatewayListener> gateway;
  std::vector<net::Endpoint> admin;
};

struct TlsConfig {
  net::TlsServerOptions options;
};

struct AccessLogConfig {
  std::string file;  // "-": standard output; empty: none
  bool json = false;
  std::uint32_t max_rejected_per_second = 100;  // of each worker

  friend bool operator==(const AccessLogConfig&, const AccessLogConfig&) = default;
};

struct AdminConfig {
  std::string token_file;  // empty: no token is needed, and nobody from elsewhere gets there
};

// How the server ends when it is told to.
struct DrainConfig {
  Nanos delay{0};                           // between "not ready" and closing the listeners
  Nanos timeout{std::chrono::seconds{30}};  // for requests in flight, from then on
};

struct ServeConfig {
  ListenConfig listen;
  std::uint32_t workers = 0;  // 0: one for each processor
  gateway::GatewayOptions gateway;
  std::optional<TlsConfig> tls;  // of the gateway's listeners
  AccessLogConfig access_log;
  AdminConfig admin;
  DrainConfig drain;
  bool lacks_descriptors = false;       // for as many connections as there may be by default
  std::vector<std::string> files_read;  // certificates of upstreams, the secret of partitions
  NamedFiles files;                     // all of its files, and its addresses
  std::size_t file_errors = 0;          // of the mistakes, those with such a file
};

// How many there will be.
[[nodiscard]] unsigned workers_of(const ServeConfig& serve) noexcept;

// So many connections of each worker there are file descriptors for; at least one.
[[nodiscard]] std::uint32_t connections_within(std::uint64_t descriptors,
                                               unsigned workers) noexcept;
// What to tell where that is fewer than by default, and no number was written.
[[nodiscard]] std::optional<Diagnostic> why_fewer_connections(const ServeConfig& serve);

// Whether only this machine can reach it.
[[nodiscard]] bool is_on_this_machine(const net::Endpoint& endpoint) noexcept;

// What else is known of the same file.
struct ServeContext {
  std::string folder;  // paths are relative to it
  std::span<const IpRange> trusted_proxies;
  std::vector<std::string> identifying_headers;  // that clients are told apart by, in lower case
  const rules::IgnoringHosts& case_insensitive_paths;
  const rules::IgnoringHosts& ignore_path_parameters;
  const rules::SlashesByHost& escaped_slashes;
};

// Of a document that was checked against configuration_shape(); everything else that is wrong is
// reported.
[[nodiscard]] ServeConfig read_serve(const config::Node& root, const config::Checked& checked,
                                     const ServeContext& context, config::Diagnostics& diagnostics);

// Keys of the top level, for configuration_section().
[[nodiscard]] std::vector<config::Key> serve_keys();

}  // namespace sluice::app
