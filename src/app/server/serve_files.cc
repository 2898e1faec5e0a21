#include "app/server/serve_files.h"

#include "app/config/configuration.h"
#include "app/config/frontends.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace sluice::app {

rules::WatchedPaths named_files(const Configuration& configuration) {
  std::vector<std::string> files;
  const auto add = [&files](const std::string& file) { files.push_back(file); };
  const embed::ClientsConfig& clients = configuration.clients;
  if (clients.api_keys) {
    add(clients.api_keys->file);
    add(clients.api_keys->secret_file);
  }
  if (clients.jwt) {
    for (const std::string& file : clients.jwt->jwks_files) add(file);
    for (const std::string& file : clients.jwt->public_key_files) add(file);
    add(clients.jwt->secret_file);
  }
  add(clients.country_file);
  add(clients.asn_file);
  for (const auto& config : configuration.serve.frontends) {
    for (const std::string& file : config->files) add(file);
  }
  std::erase(files, std::string{});
  for (std::string& file : files) file = std::filesystem::absolute(file).string();
  std::ranges::sort(files);
  files.erase(std::ranges::unique(files).begin(), files.end());
  rules::WatchedPaths named{.files = std::move(files), .folders = {}};
  if (configuration.envoy) {
    named.folders.push_back(std::filesystem::absolute(configuration.envoy->folder).string());
  }
  return named;
}

std::optional<AccessLogSink> load_access_log(const ServeConfig& serve, const AccessLogSink& before,
                                             config::Diagnostics& diagnostics) {
  auto opened = open_access_log(serve.access_log, before);
  if (opened) return *std::move(opened);
  serve.files.error(serve.access_log.file,
                    {.message = "the access log: " + opened.error().message,
                     .remedy = std::move(opened.error().remedy)},
                    diagnostics);
  return std::nullopt;
}

void check_frontend_files(const ServeConfig& serve, config::Diagnostics& diagnostics) {
  const frontend::LoadParts parts{.files = serve.files, .tickets = nullptr};
  for (std::size_t i = 0; i < serve.frontends.size(); ++i) {
    (void)frontends()[i]->open()->load(serve.frontends[i], nullptr, parts, diagnostics);
  }
}

}  // namespace sluice::app
