// Checks whether a server could start with a configuration. Nothing is opened for writing, created,
// truncated, locked or listened on, so a running server is not disturbed.
#pragma once

#include "app/config/configuration.h"
#include "config/diagnostics.h"

#include <cstdint>

namespace sluice::app {

enum class StartCheck : std::uint8_t {
  beside_a_server,  // addresses in use, and ports that need privileges, are warnings
  before_a_start,   // both are errors, and so is a file without listeners
};

// Mistakes with the state file, the access log and the addresses, each where it is named. Files
// that are only read are checked by the code that reads them.
void check_start(const Configuration& configuration, StartCheck how,
                 config::Diagnostics& diagnostics);

// For a configuration that a server rejects.
[[nodiscard]] Diagnostic nothing_to_listen_on(const ServeConfig& serve);

}  // namespace sluice::app
