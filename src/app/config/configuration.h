// The configuration file, read and checked: the engine's part and the server's part. All mistakes
// in it are reported at once.
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
  // All mistakes are in files that it names, or are missing files: the others can be checked.
  bool is_well_formed = false;
};

// Reads the file. Paths in it are relative to its folder. If it names a file of rules, that is
// read, too, unless `rules` is given. A running server keeps its number of workers; 0: as the file
// says.
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
