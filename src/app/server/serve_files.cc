#include "app/server/serve_files.h"

#include "app/config/configuration.h"
#include "base/read_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace sluice::app {
namespace {

constexpr std::size_t kTokenBytesMin = 16;
constexpr std::size_t kTlsFileBytesMax = std::size_t{16} << 20U;

// All that are missing are told of, not only the first.
bool can_read_all(const net::TlsServerOptions& options, const config::NamedFiles& files,
                  config::Diagnostics& diagnostics) {
  bool can = true;
  const auto look_at = [&](const std::string& path) {
    if (path.empty()) return;
    auto read = read_file(path, kTlsFileBytesMax);
    if (read) return;
    files.error(path, std::move(read.error()), diagnostics);
    can = false;
  };
  for (const net::CertificateFiles& one : options.certificates) {
    look_at(one.cert_file);
    look_at(one.key_file);
  }
  look_at(options.client_ca_file);
  return can;
}

}  // namespace

std::shared_ptr<const net::TlsServer> load_tls(const ServeConfig& serve,
                                               config::Diagnostics& diagnostics,
                                               std::shared_ptr<const net::TicketKeys> tickets) {
  if (!serve.tls) return nullptr;
  for (const net::CertificateFiles& files : serve.tls->options.certificates) {
    embed::warn_of_exposure(files.key_file, diagnostics);
  }
  net::TlsServerOptions options = serve.tls->options;
  if (!can_read_all(options, serve.files, diagnostics)) return nullptr;
  options.tickets = std::move(tickets);
  auto loaded = net::TlsServer::load(options);
  if (!loaded) serve.files.error(std::move(loaded.error()), diagnostics);
  return loaded ? *std::move(loaded) : nullptr;
}

rules::WatchedPaths named_files(const Configuration& configuration) {
  std::vector<std::string> files = configuration.serve.files_read;
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
  if (configuration.serve.tls) {
    const net::TlsServerOptions& tls = configuration.serve.tls->options;
    for (const auto& certificate : tls.certificates) {
      add(certificate.cert_file);
      add(certificate.key_file);
    }
    add(tls.client_ca_file);
  }
  add(configuration.serve.admin.token_file);
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

std::optional<AccessLogSink> load_access_log(const ServeConfig& serve,
                                             config::Diagnostics& diagnostics) {
  auto opened = open_access_log(serve.access_log);
  if (opened) return *std::move(opened);
  serve.files.error(serve.access_log.file,
                    {.message = "the access log: " + opened.error().message,
                     .remedy = std::move(opened.error().remedy)},
                    diagnostics);
  return std::nullopt;
}

std::shared_ptr<const admin::Guard> load_guard(const ServeConfig& serve,
                                               config::Diagnostics& diagnostics) {
  const AdminConfig& config = serve.admin;
  if (config.token_file.empty()) return std::make_shared<const admin::Guard>();
  embed::warn_of_exposure(config.token_file, diagnostics);
  Parsed<std::string> token = embed::read_secret(config.token_file);
  if (token && token->size() < kTokenBytesMin) {
    token = mistake(fmt::format("the token in '{}' is too short to be safe", config.token_file),
                    "make one by: openssl rand -hex 32");
  }
  if (!token) {
    serve.files.error(config.token_file, std::move(token.error()), diagnostics);
    return nullptr;
  }
  return std::make_shared<const admin::Guard>(*token);
}

}  // namespace sluice::app
