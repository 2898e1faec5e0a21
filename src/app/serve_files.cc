#include "app/serve_files.h"

#include "app/configuration.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>

namespace sluice::app {
namespace {

constexpr std::size_t kTokenBytesMin = 16;

}  // namespace

std::shared_ptr<const net::TlsServer> load_tls(const ServeConfig& serve,
                                               config::Diagnostics& diagnostics) {
  if (!serve.tls) return nullptr;
  for (const net::CertificateFiles& files : serve.tls->options.certificates) {
    warn_of_exposure(files.key, diagnostics);
  }
  auto loaded = net::TlsServer::load(serve.tls->options);
  if (!loaded) diagnostics.error(std::move(loaded.error()));
  return loaded ? *std::move(loaded) : nullptr;
}

std::shared_ptr<const admin::Guard> load_guard(const AdminConfig& config,
                                               config::Diagnostics& diagnostics) {
  if (config.token_file.empty()) return std::make_shared<const admin::Guard>();
  warn_of_exposure(config.token_file, diagnostics);
  Parsed<std::string> token = read_secret(config.token_file);
  if (token && token->size() < kTokenBytesMin) {
    token = mistake(fmt::format("the token in '{}' is too short to be safe", config.token_file),
                    "make one by: openssl rand -hex 32");
  }
  if (!token) {
    diagnostics.error(std::move(token.error()));
    return nullptr;
  }
  return std::make_shared<const admin::Guard>(*token);
}

}  // namespace sluice::app
