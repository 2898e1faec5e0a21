// The files that a server needs besides the configuration: the access log, and files of front ends.
//
// Mistakes are reported where each file is named.
#pragma once

#include "app/config/configuration.h"
#include "app/config/serve_configuration.h"
#include "app/server/snapshot.h"
#include "config/diagnostics.h"
#include "rules/source/watched_paths.h"

#include <optional>

namespace sluice::app {

// All files named by the configuration that may change while it is in force, except the file of
// rules, which the feed watches.
[[nodiscard]] rules::WatchedPaths named_files(const Configuration& configuration);

// Nothing, with the reason reported, if it cannot be written.
[[nodiscard]] std::optional<AccessLogSink> load_access_log(const ServeConfig& serve,
                                                           const AccessLogSink& before,
                                                           config::Diagnostics& diagnostics);

// Opens the files of the front ends, as a server does, and closes them.
void check_frontend_files(const ServeConfig& serve, config::Diagnostics& diagnostics);

}  // namespace sluice::app
