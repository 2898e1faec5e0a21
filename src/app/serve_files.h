// The files that listeners need besides the configuration: certificates and the admin's token.
//
// What is wrong with them is reported; then, and where there is nothing to load, the answer is
// null.
#pragma once

#include "app/configuration.h"
#include "app/serve_configuration.h"
#include "config/diagnostics.h"
#include "frontend/admin/guard.h"
#include "net/tls_server.h"
#include "rules/source/watched_paths.h"

#include <memory>

namespace sluice::app {

// Null also without TLS.
[[nodiscard]] std::shared_ptr<const net::TlsServer> load_tls(const ServeConfig& serve,
                                                             config::Diagnostics& diagnostics);

// All that the configuration names and that may change while it is in force, but for a file of
// rules, which the feed watches.
[[nodiscard]] rules::WatchedPaths named_files(const Configuration& configuration);

// Without a file there is a guard without a token.
[[nodiscard]] std::shared_ptr<const admin::Guard> load_guard(const AdminConfig& config,
                                                             config::Diagnostics& diagnostics);

}  // namespace sluice::app
