// Opens the files that a configuration names for identifying clients, and folders of rules.
#include "base/read_file.h"
#include "base/text.h"
#include "config/secret_file.h"
#include "embed/config/api_key_file.h"
#include "embed/config/engine_configuration.h"
#include "identity/geo.h"
#include "identity/jwks.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace sluice::embed {
namespace {

using config::Diagnostics;

constexpr std::size_t kPemBytesMax = 64U << 10U;

// Each part is loaded even if another one is wrong, so that all mistakes are reported at once. A
// wrong part is null.
class ClientFiles {
 public:
  ClientFiles(const ClientsConfig& clients, Diagnostics& diagnostics)
      : clients_(clients), diagnostics_(diagnostics) {}

  [[nodiscard]] std::shared_ptr<const identity::ApiKeys> api_keys(const ApiKeysConfig& config) {
    const std::optional<std::string> secret = secret_in(config.secret_file);
    const std::optional<std::string> text =
        taken(config.file, read_trusted_file(config.file, kKeyFileBytesMax));
    if (!text) return nullptr;
    auto records = read_api_keys(*text, config.file, diagnostics_);
    if (!secret) return nullptr;
    auto keys = identity::ApiKeys::create(std::move(records), *secret);
    if (!keys) {
      failed(config.file,
             {.message = config.file + ": " + keys.error().message, .remedy = keys.error().remedy});
      return nullptr;
    }
    return std::make_shared<const identity::ApiKeys>(*std::move(keys));
  }

  [[nodiscard]] std::shared_ptr<const identity::TokenVerifier> verifier(const JwtConfig& config) {
    const std::size_t errors_before = diagnostics_.errors();
    std::vector<identity::VerificationKey> keys;
    for (const std::string& path : config.jwks_files) {
      auto read = taken(path, identity::read_jwks(path));
      if (!read) continue;
      for (identity::VerificationKey& key : *read) keys.push_back(std::move(key));
    }
    for (const std::string& path : config.public_key_files) {
      const auto pem = taken(path, read_trusted_file(path, kPemBytesMax));
      if (pem) add_key(path, identity::VerificationKey::from_pem(*pem), keys);
    }
    const std::optional<std::string> secret = secret_in(config.secret_file);
    if (secret && !secret->empty()) {
      add_key(config.secret_file, identity::VerificationKey::from_secret(*secret, {}), keys);
    }
    if (diagnostics_.errors() != errors_before) return nullptr;
    auto verifier = identity::TokenVerifier::create(config.policy, std::move(keys));
    if (!verifier) {
      clients_.files.error(std::move(verifier.error()), diagnostics_);
      return nullptr;
    }
    return std::make_shared<const identity::TokenVerifier>(*std::move(verifier));
  }

  [[nodiscard]] std::shared_ptr<const identity::Geo> geo() {
    const std::size_t errors_before = diagnostics_.errors();
    const std::string& country = clients_.country_file;
    const std::string& asn = clients_.asn_file;
    if (!country.empty())
      (void)taken(country, identity::Geo::open({.country_file = country, .asn_file = {}}));
    if (!asn.empty()) (void)taken(asn, identity::Geo::open({.country_file = {}, .asn_file = asn}));
    if (diagnostics_.errors() != errors_before) return nullptr;
    auto both = identity::Geo::open({.country_file = country, .asn_file = asn});
    if (!both) {
      clients_.files.error(std::move(both.error()), diagnostics_);
      return nullptr;
    }
    return std::make_shared<const identity::Geo>(*std::move(both));
  }

 private:
  void failed(const std::string& path, Diagnostic what) {
    clients_.files.error(path, std::move(what), diagnostics_);
  }
  // The content of a file; nothing, and one more mistake, if that failed.
  template <class Value>
  [[nodiscard]] std::optional<Value> taken(const std::string& path, Parsed<Value> read) {
    if (read) return *std::move(read);
    failed(path, std::move(read.error()));
    return std::nullopt;
  }
  // Empty without a file.
  [[nodiscard]] std::optional<std::string> secret_in(const std::string& path) {
    if (path.empty()) return std::string{};
    config::warn_of_exposure(path, diagnostics_);
    return taken(path, config::read_secret(path));
  }
  void add_key(const std::string& path, Parsed<identity::VerificationKey> key,
               std::vector<identity::VerificationKey>& keys) {
    if (key) return keys.push_back(*std::move(key));
    failed(path, {.message = "'" + path + "': " + key.error().message,
                  .remedy = std::move(key.error().remedy)});
  }

  const ClientsConfig& clients_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::shared_ptr<const identity::Identifier> load_clients(const ClientsConfig& clients,
                                                         Diagnostics& diagnostics) {
  const std::size_t errors_before = diagnostics.errors();
  ClientFiles files{clients, diagnostics};
  identity::IdentifierConfig config;
  config.address = clients.address;
  if (clients.api_keys) {
    config.api_keys = files.api_keys(*clients.api_keys);
    config.api_key_sources = clients.api_keys->sources;
  }
  if (clients.jwt) config.tokens = files.verifier(*clients.jwt);
  if (!clients.country_file.empty() || !clients.asn_file.empty()) config.geo = files.geo();
  auto identifier = identity::Identifier::create(std::move(config));
  if (!identifier) clients.files.error(std::move(identifier.error()), diagnostics);
  if (diagnostics.errors() != errors_before) return nullptr;
  return *std::move(identifier);
}

std::shared_ptr<const rules::EnvoyRules> load_envoy(const EnvoyConfig& envoy,
                                                    Diagnostics& diagnostics) {
  std::error_code missing;
  if (!std::filesystem::is_directory(envoy.folder, missing)) {
    config::Mistake mistake;
    mistake.place = envoy.place;
    mistake.message =
        fmt::format("rules_from.envoy: cannot read the folder {}: {}", sluice::quoted(envoy.folder),
                    missing ? missing.message() : "it is a file");
    mistake.remedy = "name a folder that this program's user may read";
    diagnostics.add(std::move(mistake));
    return nullptr;
  }
  const std::size_t errors_before = diagnostics.errors();
  auto trees = std::make_shared<const rules::EnvoyRules>(rules::load_envoy_directory(
      envoy.folder, diagnostics, {.merge_domains = envoy.merge_domains}));
  return diagnostics.errors() == errors_before ? trees : nullptr;
}

}  // namespace sluice::embed
