// The files that a server needs besides the configuration: the access log, and what front ends
// name.
//
// What is wrong with them is reported, each where it is named.
#pragma once

#include "app/config/configuration.h"
#include "app/config/serve_configuration.h"
#include "app/server/snapshot.h"
#include "config/diagnostics.h"
#include "rules/source/watched_paths.h"

#include <optional>

namespace sluice::app {

// All that the configuration names and that may change while it is in force, but for a file of
// rules, which the feed watches.
[[nodiscard]] rules::WatchedPaths named_files(const Configuration& configuration);

// Nothing, with what is wrong reported, if it cannot be written.
[[nodiscard]] std::optional<AccessLogSink> load_access_log(const ServeConfig& serve,
                                                           config::Diagnostics& diagnostics);

// Opens what the front ends name, as a server does, and forgets it.
void check_frontend_files(const ServeConfig& serve, config::Diagnostics& diagnostics);

}  // namespace sluice::app
