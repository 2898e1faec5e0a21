#include "embed/config/engine_configuration.h"

#include "base/rfc3339.h"
#include "base/text.h"
#include "config/formats.h"
#include "embed/config/engine_grammar.h"
#include "rules/formats.h"
#include "rules/parse_rules.h"
#include "rules/rule_grammar.h"
#include "rules/rules_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace sluice::embed {
namespace {

using config::Checked;
using config::Diagnostics;
using config::NamedFiles;
using config::Node;
using config::parse_size;
using config::Reader;

// Reads the sections of one file.
class SectionReader {
 public:
  SectionReader(std::string_view file, const Checked& checked)
      : folder_(std::filesystem::path{file}.parent_path().string()), checked_(checked) {}

  [[nodiscard]] StateConfig state(const Node& map, NamedFiles& files) const {
    const Reader reader{map, state_section(), checked_};
    StateConfig state;
    if (reader.has("memory")) state.memory = parse_size(reader.text("memory")).value();
    state.file = files.resolve(reader.find("file"), "state.file", folder_);
    return state;
  }

  // Rules in force are kept beside the counts, unless the file says where.
  [[nodiscard]] RulesFileConfig rules_file(const Node& map, const StateConfig& state,
                                           NamedFiles& files) const {
    const Reader reader{map, rules_from_section(), checked_};
    RulesFileConfig rules;
    rules.file = files.resolve(reader.find("file"), "rules_from.file", folder_);
    reader.take("poll_interval", rules.poll_interval);
    rules.has_own_last_good_file = reader.has("last_good_file");
    if (rules.has_own_last_good_file) {
      rules.last_good_file =
          files.resolve(reader.find("last_good_file"), "rules_from.last_good_file", folder_);
    } else if (!state.file.empty()) {
      rules.last_good_file = state.file + ".rules";
    }
    return rules;
  }

  [[nodiscard]] EnvoyConfig envoy(const Node& map, NamedFiles& files) const {
    const Reader reader{map, rules_from_section(), checked_};
    return {.folder = files.resolve(reader.find("envoy"), "rules_from.envoy", folder_),
            .merge_domains = reader.flag("merge_domains", false),
            .modes = {.shadow_mode = reader.flag("shadow_mode", false),
                      .quota_mode = reader.flag("quota_mode", false)},
            .place = map.place()};
  }

  [[nodiscard]] ClientsConfig clients(const Node& map, Diagnostics& diagnostics) const {
    const Reader reader{map, clients_section(), checked_};
    ClientsConfig clients;
    clients.address = address(reader, diagnostics);
    clients.policy = {.require_auth = reader.flag("require_auth", false),
                      .exempt_preflights = reader.text("cors_preflight") == "exempt"};
    if (const Node* node = reader.find("require_auth")) clients.require_auth_place = node->place();
    NamedFiles& files = clients.files;
    if (const Node* keys = reader.find("api_keys")) clients.api_keys = api_keys(*keys, files);
    if (const Node* node = reader.find("jwt")) clients.jwt = jwt(*node, files, diagnostics);
    if (const Node* node = reader.find("geo")) {
      const Reader geo{*node, geo_section(), checked_};
      clients.country_file =
          files.resolve(geo.find("country_file"), "clients.geo.country_file", folder_);
      clients.asn_file = files.resolve(geo.find("asn_file"), "clients.geo.asn_file", folder_);
    }
    return clients;
  }

  [[nodiscard]] std::vector<engine::ListEntry> list(const Reader& lists, std::string_view key,
                                                    std::vector<config::Place>& places) const {
    std::vector<engine::ListEntry> all;
    for (const Node* node : lists.list(key)) {
      if (node->is_scalar()) {
        places.push_back(node->place());
        all.push_back(
            {.subject = engine::Subject::parse(node->text).value(), .expires = {}, .note = {}});
        continue;
      }
      const Reader reader{*node, list_entry_section(), checked_};
      if (!reader.has("subject")) continue;
      places.push_back(node->place());
      all.push_back({.subject = engine::Subject::parse(reader.text("subject")).value(),
                     .expires = instant(reader, "expires"),
                     .note = std::string{reader.text("note")}});
    }
    return all;
  }

  [[nodiscard]] std::vector<engine::Override> overrides(const Reader& file,
                                                        std::vector<config::Place>& places) const {
    std::vector<engine::Override> all;
    for (const Node* node : file.list("overrides")) {
      const Reader reader{*node, override_section(), checked_};
      if (!reader.has("subject") || !reader.has("multiplier")) continue;
      places.push_back(node->place());
      all.push_back({.subject = engine::Subject::parse(reader.text("subject")).value(),
                     .permille = engine::parse_multiplier(reader.text("multiplier")).value(),
                     .expires = instant(reader, "expires"),
                     .note = std::string{reader.text("note")}});
    }
    return all;
  }

 private:
  [[nodiscard]] static std::optional<WallTime> instant(const Reader& reader, std::string_view key) {
    if (!reader.has(key)) return std::nullopt;
    return parse_rfc3339(reader.text(key)).value();
  }

  [[nodiscard]] static std::vector<std::string> texts(const Reader& reader, std::string_view key) {
    std::vector<std::string> all;
    for (const Node* node : reader.list(key)) all.push_back(node->text);
    return all;
  }
  [[nodiscard]] std::vector<std::string> all_named(const Reader& reader, std::string_view key,
                                                   std::string_view section,
                                                   NamedFiles& files) const {
    std::vector<std::string> all;
    for (const Node* node : reader.list(key)) {
      all.push_back(files.resolve(node, fmt::format("{}.{}", section, key), folder_));
    }
    return all;
  }

  [[nodiscard]] static identity::ClientAddressConfig address(const Reader& reader,
                                                             Diagnostics& diagnostics) {
    using identity::AddressSource;
    identity::ClientAddressConfig address;
    for (const Node* node : reader.list("trusted_proxies")) {
      const IpRange range = parse_proxy(node->text).value();
      // With trusted_hops the element is counted from the right: no client can choose it.
      if (range.prefix_bits == 0 && !reader.has("trusted_hops")) {
        diagnostics.warning(*node,
                            fmt::format("with {} every client is a trusted proxy, and chooses "
                                        "its own address",
                                        range.text()),
                            "name your proxies only, as in 10.0.0.0/8");
      }
      address.trusted_proxies.push_back(range);
    }
    const std::string from = rules::lower_case(reader.text("client_ip_header"));
    if (const auto hops = reader.number("trusted_hops")) {
      if (!from.empty() && from != "x-forwarded-for") {
        diagnostics.error(*reader.find("client_ip_header"),
                          fmt::format("'trusted_hops' counts elements of x-forwarded-for, but "
                                      "'client_ip_header' names {}",
                                      from),
                          "leave out one of them");
      }
      address.source = AddressSource::trusted_hops;
      address.trusted_hops = static_cast<unsigned>(*hops);
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

  [[nodiscard]] ApiKeysConfig api_keys(const Node& map, NamedFiles& files) const {
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
    keys.file = files.resolve(reader.find("file"), "clients.api_keys.file", folder_);
    keys.secret_file =
        files.resolve(reader.find("secret_file"), "clients.api_keys.secret_file", folder_);
    return keys;
  }

  // Keys are read from files; a URL would be taken for the name of a file.
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

  // Nothing: it names a URL.
  [[nodiscard]] std::optional<JwtConfig> jwt(const Node& map, NamedFiles& files,
                                             Diagnostics& diagnostics) const {
    const Reader reader{map, jwt_section(), checked_};
    bool has_url = names_url(reader, "jwks_file", diagnostics);
    has_url |= names_url(reader, "public_key_file", diagnostics);
    if (has_url) return std::nullopt;
    JwtConfig jwt;
    jwt.jwks_files = all_named(reader, "jwks_file", "clients.jwt", files);
    jwt.public_key_files = all_named(reader, "public_key_file", "clients.jwt", files);
    jwt.secret_file = files.resolve(reader.find("secret_file"), "clients.jwt.secret_file", folder_);
    identity::TokenPolicy& policy = jwt.policy;
    for (const std::string& name : texts(reader, "algorithms")) {
      policy.algorithms.push_back(identity::parse_token_algorithm(name).value());
    }
    policy.issuers = texts(reader, "issuer");
    policy.audiences = texts(reader, "audience");
    reader.take("clock_skew", policy.clock_skew);
    policy.user_claim = reader.text("user", policy.user_claim);
    policy.tenant_claim = reader.text("tenant");
    policy.tier_claim = reader.text("tier");
    return jwt;
  }

  std::string folder_;
  const Checked& checked_;
};

// Rules of the file that the configuration names, unless `given`.
rules::RuleList rules_of_file(const RulesFileConfig& from, const NamedFiles& files,
                              const RulesText* given, Diagnostics& diagnostics) {
  if (given != nullptr) return rules::parse_rules_text(given->text, given->file, diagnostics);
  Parsed<std::string> text = rules::read_rules_file(from.file);
  if (text) return rules::parse_rules_text(*text, from.file, diagnostics);
  files.error(from.file, std::move(text.error()), diagnostics);
  return {};
}

// Keys that belong in the rules' file, and would be ignored here.
void refuse_rules_beside(const Reader& top, const RulesFileConfig& from, Diagnostics& diagnostics) {
  for (const config::Key& key : rules::rules_file_section().keys) {
    const Node* const node = top.find(key.name);
    if (node == nullptr) continue;
    diagnostics.error(*node, fmt::format("'{}' is here, but the rules are elsewhere", key.name),
                      fmt::format("write it in {}", from.file));
  }
}

}  // namespace

Diagnostic all_of(const Diagnostics& diagnostics) {
  std::string text = diagnostics.text();
  while (text.ends_with('\n')) text.pop_back();
  return {.message = std::move(text), .remedy = {}};
}

std::unique_ptr<const CheckedFile> check_file(std::string_view text, std::string_view file,
                                              const config::Shape& shape,
                                              Diagnostics& diagnostics) {
  std::optional<config::Document> document = config::parse_document(text, file, diagnostics);
  if (!document) return nullptr;
  auto all = std::make_unique<CheckedFile>();
  all->document = *std::move(document);
  const Node& root = all->document.root;
  if (root.is_null()) {
    diagnostics.error(root, "the file says nothing",
                      "`sluice init` writes a configuration to begin with");
    return nullptr;
  }
  all->checked = config::check(root, shape, "the file", diagnostics);  // by the nodes' addresses
  return root.is_map() ? std::move(all) : nullptr;
}

EngineConfiguration read_engine_sections(const CheckedFile& all, std::string_view file,
                                         Diagnostics& diagnostics, const RulesText* rules) {
  const Reader top{all.document.root, engine_section(), all.checked};
  const SectionReader reader{file, all.checked};
  EngineConfiguration configuration;
  NamedFiles& files = configuration.files;
  if (const Node* state = top.find("state")) configuration.state = reader.state(*state, files);
  if (const Node* clients = top.find("clients")) {
    configuration.clients = reader.clients(*clients, diagnostics);
  }
  if (const Node* lists = top.find("lists")) {
    const Reader both{*lists, lists_section(), all.checked};
    configuration.exceptions.allow =
        reader.list(both, "allow", configuration.exception_places.allow);
    configuration.exceptions.deny = reader.list(both, "deny", configuration.exception_places.deny);
  }
  configuration.exceptions.overrides =
      reader.overrides(top, configuration.exception_places.overrides);
  const Node* const from = top.find("rules_from");
  if (from != nullptr && Reader{*from, rules_from_section(), all.checked}.has("file")) {
    configuration.rules_file = reader.rules_file(*from, configuration.state, files);
    refuse_rules_beside(top, *configuration.rules_file, diagnostics);
    const std::size_t errors_above = diagnostics.errors();
    configuration.rules = rules_of_file(*configuration.rules_file, files, rules, diagnostics);
    configuration.file_errors = diagnostics.errors() - errors_above;
  } else {
    if (from != nullptr) configuration.envoy = reader.envoy(*from, files);
    configuration.rules = rules::read_rules(all.document.root, all.checked, diagnostics);
  }
  return configuration;
}

EngineConfiguration read_engine_configuration(std::string_view text, std::string_view file,
                                              Diagnostics& diagnostics, const RulesText* rules) {
  const auto checked = check_file(text, file, config::map_of(engine_section), diagnostics);
  if (checked == nullptr) return {};
  return read_engine_sections(*checked, file, diagnostics, rules);
}

}  // namespace sluice::embed
