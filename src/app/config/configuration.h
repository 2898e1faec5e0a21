// The configuration file, read and checked: what the engine needs of it and what a server needs.
// Everything that is wrong with it is reported at once.
//
// Plain data. embed/config opens the files that the engine's part names, app/server the server's.
#pragma once

#include "app/config/serve_configuration.h"
#include "config/diagnostics.h"
#include "config/grammar.h"
#include "embed/config/engine_configuration.h"
#include "frontend/access_log/log_secrets.h"

#include <string>
#include <string_view>

namespace sluice::app {

struct Configuration : embed::EngineConfiguration {
  ServeConfig serve;
  // All that is wrong with it is what files that it names hold, or that they are missing: the
  // others can be looked at.
  bool is_well_formed = false;
};

// What stands in the file. Paths in it are relative to the folder that it is in. If it names a file
// of rules, that is read, too, unless `rules` is given. Of a server that runs, the number of
// workers stays what it is; 0: as the file says.
[[nodiscard]] Configuration read_configuration(std::string_view text, std::string_view file,
                                               config::Diagnostics& diagnostics,
                                               const embed::RulesText* rules = nullptr,
                                               unsigned workers_in_force = 0);

// What access logs hide of requests: credentials, wherever the configuration expects them.
[[nodiscard]] frontend::LogSecrets secrets_of(const embed::ClientsConfig& clients);

// The grammar, for editors and for the reference.
[[nodiscard]] config::Shape configuration_shape();
[[nodiscard]] std::string configuration_schema();
[[nodiscard]] std::string configuration_reference();  // docs/configuration.md

}  // namespace sluice::app
