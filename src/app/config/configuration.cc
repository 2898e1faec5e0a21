#include "app/config/configuration.h"

#include "app/config/without_effect.h"
#include "config/document.h"
#include "identity/api_keys.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace sluice::app {
namespace {

// Headers that identify clients: an upstream server must never read a forged one.
std::vector<std::string> identifying_headers(const embed::ClientsConfig& clients) {
  std::vector<std::string> names;
  if (!clients.address.header.empty()) names.push_back(clients.address.header);
  if (!clients.api_keys) return names;
  for (const identity::ApiKeySource& source : clients.api_keys->sources) {
    if (source.kind == identity::ApiKeySource::Kind::header) names.push_back(source.name);
  }
  return names;
}

}  // namespace

frontend::LogSecrets secrets_of(const embed::ClientsConfig& clients) {
  std::vector<std::string> fields = frontend::usual_secret_fields();
  std::vector<std::string> headers = frontend::usual_secret_headers();
  std::vector<std::string> cookies = frontend::usual_secret_cookies();
  if (clients.api_keys) {
    using Kind = identity::ApiKeySource::Kind;
    for (const identity::ApiKeySource& source : clients.api_keys->sources) {
      switch (source.kind) {
        case Kind::header: headers.push_back(source.name); break;
        case Kind::query: fields.push_back(source.name); break;
        case Kind::cookie: cookies.push_back(source.name); break;
        case Kind::basic: break;  // Authorization is always included
      }
    }
  }
  return {std::move(fields), std::move(headers), std::move(cookies)};
}

Configuration read_configuration(std::string_view text, std::string_view file,
                                 config::Diagnostics& diagnostics, const embed::RulesText* rules,
                                 unsigned workers_in_force) {
  const std::size_t errors_before = diagnostics.errors();
  const auto checked = embed::check_file(text, file, configuration_shape(), diagnostics);
  if (checked == nullptr) return {};
  Configuration configuration{embed::read_engine_sections(*checked, file, diagnostics, rules)};
  configuration.serve =
      read_serve(checked->document.root, checked->checked,
                 {.folder = std::filesystem::path{file}.parent_path().string(),
                  .trusted_proxies = configuration.clients.address.trusted_proxies,
                  .identifying_headers = identifying_headers(configuration.clients),
                  .client_ip_header = configuration.clients.address.header,
                  .log_secrets = secrets_of(configuration.clients),
                  .case_insensitive_paths = configuration.rules.case_insensitive_paths,
                  .ignore_path_parameters = configuration.rules.ignore_path_parameters,
                  .escaped_slashes = configuration.rules.escaped_slashes,
                  .workers_in_force = workers_in_force},
                 diagnostics);
  configuration.is_well_formed = diagnostics.errors() == errors_before + configuration.file_errors +
                                                             configuration.serve.file_errors;
  warn_of_no_effect(configuration, diagnostics);
  return configuration;
}

}  // namespace sluice::app
