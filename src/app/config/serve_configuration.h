// The server's part besides rules: its front ends, its workers, its log and how it stops.
#pragma once

#include "config/diagnostics.h"
#include "config/grammar.h"
#include "config/named_files.h"
#include "frontend/frontend.h"
#include "frontend/frontend_config.h"
#include <sluice/time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::app {

struct AccessLogConfig {
  std::string file;  // "-": standard output; empty: none
  bool json = false;
  std::uint32_t max_rejected_per_second = 100;  // of each worker

  friend bool operator==(const AccessLogConfig&, const AccessLogConfig&) = default;
};

// How the server drains.
struct DrainConfig {
  Nanos delay{0};                           // between "not ready" and closing the listeners
  Nanos timeout{std::chrono::seconds{30}};  // for requests in flight, from then on
};

struct ServeConfig {
  frontend::FrontendConfigs frontends;  // in the order of frontends()
  std::uint32_t workers = 0;            // 0: one for each processor
  AccessLogConfig access_log;
  DrainConfig drain;
  config::NamedFiles files;     // all of its files and addresses
  std::size_t file_errors = 0;  // mistakes in the files themselves
};

// How many will be started.
[[nodiscard]] unsigned workers_of(const ServeConfig& serve) noexcept;

// Whether the file has an address for any front end with this placement.
[[nodiscard]] bool listens(const ServeConfig& serve, frontend::Placement placement);

// Reads a document that was checked against configuration_shape(); reports all other mistakes.
[[nodiscard]] ServeConfig read_serve(const config::Node& root, const config::Checked& checked,
                                     const frontend::FileContext& context,
                                     config::Diagnostics& diagnostics);

// Keys of the top level, for configuration_section().
[[nodiscard]] std::vector<config::Key> serve_keys();

}  // namespace sluice::app
