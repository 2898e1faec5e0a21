// Everything that requests are served by, at one moment and with one version: rules, identity,
// lists, routes, upstreams, timeouts, certificates, the log's format and the admin's token.
//
// Parts are immutable and behind shared pointers, so that a change replaces only its part. The
// control thread publishes a snapshot (control.h); a worker takes it between two turns of its loop,
// and a request keeps the rules and routes in force when its headers were complete. Listeners, keys
// of TLS tickets and descriptors of logs are not part of it: they outlive a reload.
#pragma once

#include "app/config/serve_configuration.h"
#include "app/server/log_file.h"
#include "embed/engine_state.h"
#include "frontend/access_log/access_record.h"
#include "frontend/frontend_config.h"
#include "frontend/metrics/decision_counters.h"
#include <sluice/diagnostic.h>

#include <memory>

namespace sluice::app {

// Where lines go, and in which form; the file is null if the log is off.
struct AccessLogSink {
  AccessLogConfig config;
  std::shared_ptr<LogFile> file;

  friend bool operator==(const AccessLogSink&, const AccessLogSink&) = default;
};
// `before` is the one in force: a file that is open already is shared.
[[nodiscard]] Parsed<AccessLogSink> open_access_log(const AccessLogConfig& config,
                                                    const AccessLogSink& before = {});

struct ServerSnapshot {
  embed::EngineContent engine;
  std::shared_ptr<const frontend::DecisionCounters> counters;
  std::shared_ptr<const frontend::AccessFormat::Options> logged;  // what the log shows and hides
  AccessLogSink access_log;
  frontend::FrontendConfigs frontends;  // in the order of frontends(), each with its loaded files
  DrainConfig drain;
};

}  // namespace sluice::app
