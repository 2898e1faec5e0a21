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

#include <memory>
#include <string>
#include <vector>

namespace sluice::app {

// Null also without TLS.
[[nodiscard]] std::shared_ptr<const net::TlsServer> load_tls(const ServeConfig& serve,
                                                             config::Diagnostics& diagnostics);

// All files that the configuration names and that may change while it is in force, without those of
// rules. Absolute.
[[nodiscard]] std::vector<std::string> named_files(const Configuration& configuration);

// Without a file there is a guard without a token.
[[nodiscard]] std::shared_ptr<const admin::Guard> load_guard(const AdminConfig& config,
                                                             config::Diagnostics& diagnostics);

}  // namespace sluice::app
