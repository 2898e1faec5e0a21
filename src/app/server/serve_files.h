// The files that listeners need besides the configuration: certificates, the access log and the
// admin's token.
//
// What is wrong with them is reported; then, and where there is nothing to load, the answer is
// null.
#pragma once

#include "app/config/configuration.h"
#include "app/config/serve_configuration.h"
#include "app/server/snapshot.h"
#include "config/diagnostics.h"
#include "frontend/admin/guard.h"
#include "net/tls_server.h"
#include "rules/source/watched_paths.h"

#include <memory>
#include <optional>

namespace sluice::app {

// Null also without TLS. Sessions begun under the same keys can be resumed; null: none.
[[nodiscard]] std::shared_ptr<const net::TlsServer> load_tls(
    const ServeConfig& serve, config::Diagnostics& diagnostics,
    std::shared_ptr<const net::TicketKeys> tickets = nullptr);

// All that the configuration names and that may change while it is in force, but for a file of
// rules, which the feed watches.
[[nodiscard]] rules::WatchedPaths named_files(const Configuration& configuration);

// Nothing, with what is wrong reported, if it cannot be written.
[[nodiscard]] std::optional<AccessLogSink> load_access_log(const ServeConfig& serve,
                                                           config::Diagnostics& diagnostics);

// Without a file there is a guard without a token.
[[nodiscard]] std::shared_ptr<const admin::Guard> load_guard(const ServeConfig& serve,
                                                             config::Diagnostics& diagnostics);

}  // namespace sluice::app
