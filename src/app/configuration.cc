#include "app/configuration.h"

#include "app/api_key_file.h"
#include "app/configuration_grammar.h"
#include "base/duration.h"
#include "base/read_file.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "config/document.h"
#include "identity/geo.h"
#include "identity/jwks.h"
#include "rules/formats.h"
#include "rules/parse_rules.h"
#include "rules/rule_grammar.h"
#include "rules/source/file_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace sluice::app {
namespace {

using config::Checked;
using config::Diagnostics;
using config::Node;
using config::Reader;

constexpr std::size_t kSecretBytesMax = 64U << 10U;

// Reads the sections of one file.
class ConfigurationReader {
 public:
  ConfigurationReader(std::string_view file, const Checked& checked)
      : folder_(std::filesystem::path{file}.parent_path()), checked_(checked) {}

  [[nodiscard]] StateConfig state(const Node& map) const {
    const Reader reader{map, state_section(), checked_};
    StateConfig state;
    if (reader.has("memory")) state.memory = parse_memory(reader.text("memory")).value();
    if (reader.has("file")) state.file = path(reader.text("file"));
    return state;
  }

  // What was in force is kept beside the counts, unless the file says where.
  [[nodiscard]] RulesFileConfig rules_file(const Node& map, const StateConfig& state) const {
    const Reader reader{map, rules_from_section(), checked_};
    RulesFileConfig rules;
    rules.file = path(reader.text("file"));
    if (reader.has("every")) rules.every = parse_duration(reader.text("every")).value();
    rules.says_last_good = reader.has("last_good");
    if (rules.says_last_good) {
      rules.last_good = path(reader.text("last_good"));
    } else if (!state.file.empty()) {
      rules.last_good = state.file + ".rules";
    }
    return rules;
  }

  [[nodiscard]] EnvoyConfig envoy(const Node& map) const {
    const Reader reader{map, rules_from_section(), checked_};
    return {.folder = path(reader.text("envoy")),
            .merge_domains = reader.flag("merge_domains", false),
            .modes = {.shadow_mode = reader.flag("shadow_mode", false),
                      .quota_mode = reader.flag("quota_mode", false)}};
  }

  [[nodiscard]] ClientsConfig clients(const Node& map, Diagnostics& diagnostics) const {
    const Reader reader{map, clients_section(), checked_};
    ClientsConfig clients;
    clients.address = address(reader, diagnostics);
    clients.policy = {.require_proof = reader.flag("require", false),
                      .exempt_preflights = reader.text("preflight") == "exempt"};
    if (const Node* keys = reader.find("api_keys")) clients.api_keys = api_keys(*keys);
    if (const Node* tokens = reader.find("tokens")) {
      clients.tokens = this->tokens(*tokens, diagnostics);
    }
    if (const Node* geo = reader.find("geo")) {
      const Reader files{*geo, geo_section(), checked_};
      clients.country_file = path(files.text("country"));
      clients.asn_file = path(files.text("asn"));
    }
    return clients;
  }

  [[nodiscard]] std::vector<engine::ListEntry> list(const Reader& lists,
                                                    std::string_view key) const {
    std::vector<engine::ListEntry> all;
    for (const Node* node : lists.list(key)) {
      if (node->is_scalar()) {
        all.push_back(
            {.subject = engine::Subject::parse(node->text).value(), .until = {}, .note = {}});
        continue;
      }
      const Reader reader{*node, list_entry_section(), checked_};
      if (!reader.has("who")) continue;
      all.push_back({.subject = engine::Subject::parse(reader.text("who")).value(),
                     .until = instant(reader, "until"),
                     .note = std::string{reader.text("note")}});
    }
    return all;
  }

  [[nodiscard]] std::vector<engine::Override> overrides(const Reader& file) const {
    std::vector<engine::Override> all;
    for (const Node* node : file.list("overrides")) {
      const Reader reader{*node, override_section(), checked_};
      if (!reader.has("who") || !reader.has("factor")) continue;
      all.push_back({.subject = engine::Subject::parse(reader.text("who")).value(),
                     .permille = engine::parse_factor(reader.text("factor")).value(),
                     .until = instant(reader, "until"),
                     .note = std::string{reader.text("note")}});
    }
    return all;
  }

 private:
  [[nodiscard]] static std::optional<WallTime> instant(const Reader& reader, std::string_view key) {
    if (!reader.has(key)) return std::nullopt;
    return parse_rfc3339(reader.text(key)).value();
  }

  // As seen from the folder of the file.
  [[nodiscard]] std::string path(std::string_view written) const {
    return written.empty() ? std::string{} : (folder_ / written).lexically_normal().string();
  }

  [[nodiscard]] static std::vector<std::string> texts(const Reader& reader, std::string_view key) {
    std::vector<std::string> all;
    for (const Node* node : reader.list(key)) all.push_back(node->text);
    return all;
  }
  [[nodiscard]] std::vector<std::string> paths(const Reader& reader, std::string_view key) const {
    std::vector<std::string> all = texts(reader, key);
    for (std::string& one : all) one = path(one);
    return all;
  }

  [[nodiscard]] static identity::ClientAddressConfig address(const Reader& reader,
                                                             Diagnostics& diagnostics) {
    using identity::AddressSource;
    identity::ClientAddressConfig address;
    for (const Node* node : reader.list("trusted_proxies")) {
      const IpRange range = parse_proxy(node->text).value();
      // Elements that are counted are chosen by nobody, whoever is trusted.
      if (range.prefix_bits == 0 && !reader.has("hops")) {
        diagnostics.warning(*node,
                            fmt::format("with {} every client is a trusted proxy, and chooses "
                                        "its own address",
                                        range.text()),
                            "name your proxies only, as in 10.0.0.0/8");
      }
      address.trusted_proxies.push_back(range);
    }
    const std::string from = rules::lower_case(reader.text("address_from"));
    if (const auto hops = reader.number("hops")) {
      if (!from.empty() && from != "x-forwarded-for") {
        diagnostics.error(*reader.find("address_from"),
                          fmt::format("'hops' counts elements of x-forwarded-for, but "
                                      "'address_from' names {}",
                                      from),
                          "leave out one of them");
      }
      address.source = AddressSource::hops;
      address.hops = static_cast<unsigned>(*hops);
    } else if (from == "forwarded") {
      address.source = AddressSource::forwarded;
    } else if (!from.empty() && from != "x-forwarded-for") {
      address.source = AddressSource::header;
      address.header = from;
    } else if (!from.empty() || !address.trusted_proxies.empty()) {
      address.source = AddressSource::x_forwarded_for;
    }
    return address;
  }

  [[nodiscard]] ApiKeysConfig api_keys(const Node& map) const {
    using Kind = identity::ApiKeySource::Kind;
    const Reader reader{map, api_keys_section(), checked_};
    ApiKeysConfig keys;
    const auto add = [&](std::string_view key, Kind kind) {
      for (const std::string& name : texts(reader, key)) {
        keys.sources.push_back(
            {.kind = kind, .name = kind == Kind::header ? rules::lower_case(name) : name});
      }
    };
    add("header", Kind::header);
    add("query", Kind::query);
    add("cookie", Kind::cookie);
    if (reader.flag("basic", false)) keys.sources.push_back({.kind = Kind::basic, .name = {}});
    if (keys.sources.empty()) keys.sources.emplace_back();
    keys.file = path(reader.text("file"));
    keys.secret_file = path(reader.text("secret_file"));
    return keys;
  }

  // Keys are read from files; an address would be looked for as a file of that name.
  static bool names_url(const Reader& reader, std::string_view key, Diagnostics& diagnostics) {
    bool found = false;
    for (const Node* node : reader.list(key)) {
      if (node->text.find("://") == std::string::npos) continue;
      found = true;
      diagnostics.error(*node,
                        fmt::format("{} is a URL, and '{}' names files: keys are not fetched yet",
                                    sluice::quoted(node->text), key),
                        "save the keys to a file, as with curl -o FILE URL, and name the file; "
                        "the server reads it again when it changes");
    }
    return found;
  }

  // Nothing: it names what is no file.
  [[nodiscard]] std::optional<TokensConfig> tokens(const Node& map,
                                                   Diagnostics& diagnostics) const {
    const Reader reader{map, tokens_section(), checked_};
    bool has_url = names_url(reader, "jwks", diagnostics);
    has_url |= names_url(reader, "public_key", diagnostics);
    if (has_url) return std::nullopt;
    TokensConfig tokens;
    tokens.jwks = paths(reader, "jwks");
    tokens.public_keys = paths(reader, "public_key");
    tokens.secret_file = path(reader.text("secret_file"));
    identity::TokenPolicy& policy = tokens.policy;
    for (const std::string& name : texts(reader, "algorithms")) {
      policy.algorithms.push_back(identity::parse_token_algorithm(name).value());
    }
    policy.issuers = texts(reader, "issuer");
    policy.audiences = texts(reader, "audience");
    if (reader.has("leeway")) policy.leeway = parse_duration(reader.text("leeway")).value();
    policy.user_claim = reader.text("user", policy.user_claim);
    policy.tenant_claim = reader.text("tenant");
    policy.tier_claim = reader.text("tier");
    return tokens;
  }

  std::filesystem::path folder_;
  const Checked& checked_;
};

Parsed<std::shared_ptr<const identity::ApiKeys>> load_api_keys(const ApiKeysConfig& config,
                                                               Diagnostics& diagnostics) {
  std::string secret;
  if (!config.secret_file.empty()) {
    Parsed<std::string> read = read_secret(config.secret_file);
    if (!read) return tl::unexpected(std::move(read.error()));
    secret = *std::move(read);
  }
  const Parsed<std::string> text = read_trusted_file(config.file, kKeyFileBytesMax);
  if (!text) return tl::unexpected(text.error());
  auto keys = identity::ApiKeys::create(read_api_keys(*text, config.file, diagnostics), secret);
  if (!keys) return mistake(config.file + ": " + keys.error().message, keys.error().remedy);
  return std::make_shared<const identity::ApiKeys>(*std::move(keys));
}

Parsed<std::shared_ptr<const identity::TokenVerifier>> load_tokens(const TokensConfig& config) {
  std::vector<identity::VerificationKey> keys;
  for (const std::string& path : config.jwks) {
    auto read = identity::read_jwks(path);
    if (!read) return tl::unexpected(std::move(read.error()));
    for (identity::VerificationKey& key : *read) keys.push_back(std::move(key));
  }
  for (const std::string& path : config.public_keys) {
    Parsed<std::string> pem = read_trusted_file(path, kSecretBytesMax);
    if (!pem) return tl::unexpected(std::move(pem.error()));
    auto key = identity::VerificationKey::from_pem(*pem);
    if (!key) return mistake("'" + path + "': " + key.error().message, key.error().remedy);
    keys.push_back(*std::move(key));
  }
  if (!config.secret_file.empty()) {
    Parsed<std::string> secret = read_secret(config.secret_file);
    if (!secret) return tl::unexpected(std::move(secret.error()));
    auto key = identity::VerificationKey::from_secret(*secret, {});
    if (!key) {
      return mistake("'" + config.secret_file + "': " + key.error().message, key.error().remedy);
    }
    keys.push_back(*std::move(key));
  }
  auto verifier = identity::TokenVerifier::create(config.policy, std::move(keys));
  if (!verifier) return tl::unexpected(std::move(verifier.error()));
  return std::make_shared<const identity::TokenVerifier>(*std::move(verifier));
}

Parsed<std::shared_ptr<const identity::Geo>> load_geo(const ClientsConfig& clients) {
  auto geo = identity::Geo::open({.country = clients.country_file, .asn = clients.asn_file});
  if (!geo) return tl::unexpected(std::move(geo.error()));
  return std::make_shared<const identity::Geo>(*std::move(geo));
}

// Of the file that the configuration names, or as somebody has read it.
rules::RuleList rules_of_file(const RulesFileConfig& from, const RulesText* given,
                              Diagnostics& diagnostics) {
  if (given != nullptr) return rules::parse_rules_text(given->text, given->file, diagnostics);
  Parsed<rules::Fetched> fetched = rules::FileSource{from.file}.fetch();
  if (fetched) return rules::parse_rules_text(fetched->text, from.file, diagnostics);
  diagnostics.error(std::move(fetched.error()));
  return {};
}

// Keys that belong to the rules, and would be forgotten here.
void refuse_rules_beside(const Reader& top, const RulesFileConfig& from, Diagnostics& diagnostics) {
  for (const config::Key& key : rules::rules_file_section().keys) {
    const Node* const node = top.find(key.name);
    if (node == nullptr) continue;
    diagnostics.error(*node, fmt::format("'{}' is here, but the rules are elsewhere", key.name),
                      fmt::format("write it in {}", from.file));
  }
}

// What tells who a client is: a server behind must not read it from an imitation.
std::vector<std::string> identifying_headers(const ClientsConfig& clients) {
  std::vector<std::string> names;
  if (!clients.address.header.empty()) names.push_back(clients.address.header);
  if (!clients.api_keys) return names;
  for (const identity::ApiKeySource& source : clients.api_keys->sources) {
    if (source.kind == identity::ApiKeySource::Kind::header) names.push_back(source.name);
  }
  return names;
}

// Nobody may believe that nodes count together before they do.
void warn_of_modes(const rules::RuleList& list, Diagnostics& diagnostics) {
  for (const rules::Rule& rule : list.rules) {
    if (rule.mode == rules::Mode::automatic || rule.mode == rules::Mode::local) continue;
    config::Mistake mistake;
    mistake.severity = config::Severity::warning;
    mistake.place = rule.place;
    mistake.message = fmt::format(
        "rule '{}' has a mode, but several nodes cannot share a limit yet: each counts for itself",
        rule.name);
    mistake.remedy = "leave it out, or write mode: local";
    diagnostics.add(std::move(mistake));
  }
}

}  // namespace

Parsed<std::string> read_secret(const std::string& path) {
  Parsed<std::string> secret = read_trusted_file(path, kSecretBytesMax);
  if (!secret) return secret;
  while (secret->ends_with('\n') || secret->ends_with('\r')) secret->pop_back();
  if (secret->empty()) return mistake("the secret in '" + path + "' is empty", "write it there");
  return secret;
}

void warn_of_exposure(const std::string& secret_file, Diagnostics& diagnostics) {
  if (secret_file.empty()) return;
  if (auto exposed = warn_if_world_readable(secret_file)) diagnostics.warning(*std::move(exposed));
}

Diagnostic all_of(const Diagnostics& diagnostics) {
  std::string text = diagnostics.text();
  while (text.ends_with('\n')) text.pop_back();
  return {.message = std::move(text), .remedy = {}};
}

Configuration read_configuration(std::string_view text, std::string_view file,
                                 Diagnostics& diagnostics, const RulesText* rules) {
  const std::optional<config::Document> document = config::parse_document(text, file, diagnostics);
  if (!document) return {};
  if (document->root.is_null()) {
    diagnostics.error(document->root, "the file says nothing",
                      "`sluice init` writes a configuration to begin with");
    return {};
  }
  const Checked checked =
      config::check(document->root, configuration_shape(), "the file", diagnostics);
  if (!document->root.is_map()) return {};
  const Reader top{document->root, configuration_section(), checked};
  const ConfigurationReader reader{file, checked};
  Configuration configuration;
  if (const Node* state = top.find("state")) configuration.state = reader.state(*state);
  if (const Node* clients = top.find("clients")) {
    configuration.clients = reader.clients(*clients, diagnostics);
  }
  if (const Node* lists = top.find("lists")) {
    const Reader both{*lists, lists_section(), checked};
    configuration.exceptions.allow = reader.list(both, "allow");
    configuration.exceptions.deny = reader.list(both, "deny");
  }
  configuration.exceptions.overrides = reader.overrides(top);
  const Node* const from = top.find("rules_from");
  if (from != nullptr && Reader{*from, rules_from_section(), checked}.has("file")) {
    configuration.rules_file = reader.rules_file(*from, configuration.state);
    refuse_rules_beside(top, *configuration.rules_file, diagnostics);
    configuration.rules = rules_of_file(*configuration.rules_file, rules, diagnostics);
  } else {
    if (from != nullptr) configuration.envoy = reader.envoy(*from);
    configuration.rules = rules::read_rules(document->root, checked, diagnostics);
  }
  configuration.serve =
      read_serve(document->root, checked,
                 {.folder = std::filesystem::path{file}.parent_path().string(),
                  .trusted_proxies = configuration.clients.address.trusted_proxies,
                  .identifying_headers = identifying_headers(configuration.clients),
                  .ignore_case = configuration.rules.ignore_case,
                  .ignore_parameters = configuration.rules.ignore_parameters,
                  .escaped_slashes = configuration.rules.escaped_slashes},
                 diagnostics);
  warn_of_modes(configuration.rules, diagnostics);
  return configuration;
}

std::shared_ptr<const identity::Identifier> load_clients(const ClientsConfig& clients,
                                                         Diagnostics& diagnostics) {
  const std::size_t errors_before = diagnostics.errors();
  // What a part is, or null and a mistake more.
  const auto taken = [&](auto loaded) {
    if (!loaded) diagnostics.error(std::move(loaded.error()));
    return loaded ? *std::move(loaded) : nullptr;
  };
  identity::IdentifierConfig config;
  config.address = clients.address;
  if (clients.api_keys) warn_of_exposure(clients.api_keys->secret_file, diagnostics);
  if (clients.tokens) warn_of_exposure(clients.tokens->secret_file, diagnostics);
  if (clients.api_keys) {
    config.api_keys = taken(load_api_keys(*clients.api_keys, diagnostics));
    config.api_key_sources = clients.api_keys->sources;
  }
  if (clients.tokens) config.tokens = taken(load_tokens(*clients.tokens));
  if (!clients.country_file.empty() || !clients.asn_file.empty())
    config.geo = taken(load_geo(clients));
  auto identifier = taken(identity::Identifier::create(std::move(config)));
  return diagnostics.errors() == errors_before ? identifier : nullptr;
}

std::shared_ptr<const rules::EnvoyRules> load_envoy(const EnvoyConfig& envoy,
                                                    Diagnostics& diagnostics) {
  const std::size_t errors_before = diagnostics.errors();
  auto trees = std::make_shared<const rules::EnvoyRules>(rules::load_envoy_directory(
      envoy.folder, diagnostics, {.merge_domains = envoy.merge_domains}));
  return diagnostics.errors() == errors_before ? trees : nullptr;
}

}  // namespace sluice::app
