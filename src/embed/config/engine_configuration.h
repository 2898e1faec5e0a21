// The engine's part of a configuration file, read and checked: all mistakes in it are reported at
// once. app/config adds the server's part.
//
// Plain data. load_clients() opens the files that it names (API keys, keys of tokens, GeoIP),
// load_envoy() folders of rules, so that a configuration can be checked where they are missing. A
// file of rules is read with it.
#pragma once

#include "config/diagnostics.h"
#include "config/document.h"
#include "config/grammar.h"
#include "config/named_files.h"
#include "engine/client_policy.h"
#include "engine/envoy_snapshot.h"
#include "engine/lists.h"
#include "engine/overrides.h"
#include "identity/api_keys.h"
#include "identity/client_address.h"
#include "identity/identifier.h"
#include "identity/jwt.h"
#include "rules/envoy_rules.h"
#include "rules/rule.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::embed {

struct StateConfig {
  std::size_t memory = std::size_t{64} << 20U;
  std::string file;  // empty: counts are lost with the process
};

struct ApiKeysConfig {
  std::vector<identity::ApiKeySource> sources;
  std::string file;
  std::string secret_file;  // for keyed hashes
};

struct JwtConfig {
  std::vector<std::string> jwks_files;
  std::vector<std::string> public_key_files;  // PEM
  std::string secret_file;                    // HS256
  identity::TokenPolicy policy;
};

struct ClientsConfig {
  identity::ClientAddressConfig address;
  std::optional<ApiKeysConfig> api_keys;
  std::optional<JwtConfig> jwt;
  std::string country_file;
  std::string asn_file;
  engine::ClientPolicy policy;
  config::Place require_auth_place;
  config::NamedFiles files;
};

// Clients with other treatment than the rules say.
struct ExceptionsConfig {
  std::vector<engine::ListEntry> allow;
  std::vector<engine::ListEntry> deny;
  std::vector<engine::Override> overrides;
};

// Where each entry is written.
struct ExceptionPlaces {
  std::vector<config::Place> allow;
  std::vector<config::Place> deny;
  std::vector<config::Place> overrides;
};

// Rules in a file of their own, which a server watches.
struct RulesFileConfig {
  std::string file;
  Nanos poll_interval{std::chrono::seconds{60}};  // in addition to the watch
  std::string last_good_file;                     // where rules in force are kept; empty: nowhere
  bool has_own_last_good_file = false;            // else it follows from the state file

  // As written: a change of the state file is a change of that key.
  friend bool operator==(const RulesFileConfig& a, const RulesFileConfig& b) noexcept {
    return a.file == b.file && a.poll_interval == b.poll_interval &&
           a.has_own_last_good_file == b.has_own_last_good_file &&
           (!a.has_own_last_good_file || a.last_good_file == b.last_good_file);
  }
};

// Trees of envoyproxy/ratelimit.
struct EnvoyConfig {
  std::string folder;
  bool merge_domains = false;
  engine::EnvoyModes modes;
  config::Place place;
};

struct EngineConfiguration {
  rules::RuleList rules;
  std::optional<RulesFileConfig> rules_file;  // source of the rules; nothing: the file itself
  std::optional<EnvoyConfig> envoy;
  ExceptionsConfig exceptions;
  ExceptionPlaces exception_places;
  ClientsConfig clients;
  StateConfig state;
  config::NamedFiles files;     // of state and rules_from; clients have their own
  std::size_t file_errors = 0;  // mistakes in the file of rules
};

// The content of a file of rules.
struct RulesText {
  std::string text;
  std::string file;  // for messages
};

// The engine's part of a whole file. Paths in it are relative to its folder. If it names a file of
// rules, that is read, too, unless `rules` is given. The server's keys (server_keys.h) may be
// there; their values are ignored.
[[nodiscard]] EngineConfiguration read_engine_configuration(std::string_view text,
                                                            std::string_view file,
                                                            config::Diagnostics& diagnostics,
                                                            const RulesText* rules = nullptr);

// ---- for a reader of the server's keys ------------------------------------------------------

struct CheckedFile {
  config::Document document;
  config::Checked checked;
};

// Parses the text and checks it against a grammar. Null: no map.
[[nodiscard]] std::unique_ptr<const CheckedFile> check_file(std::string_view text,
                                                            std::string_view file,
                                                            const config::Shape& shape,
                                                            config::Diagnostics& diagnostics);

// For a file that was checked against a section made by configuration_section_with().
[[nodiscard]] EngineConfiguration read_engine_sections(const CheckedFile& all,
                                                       std::string_view file,
                                                       config::Diagnostics& diagnostics,
                                                       const RulesText* rules);

// ---------------------------------------------------------------------------------------------

// All diagnostics as one.
[[nodiscard]] Diagnostic all_of(const config::Diagnostics& diagnostics);

// Opens the files that the configuration names. Null on any mistake; all of them are reported, each
// where the file is named.
[[nodiscard]] std::shared_ptr<const identity::Identifier> load_clients(
    const ClientsConfig& clients, config::Diagnostics& diagnostics);

// The trees in the folder that the configuration names. Null on any mistake in them.
[[nodiscard]] std::shared_ptr<const rules::EnvoyRules> load_envoy(const EnvoyConfig& envoy,
                                                                  config::Diagnostics& diagnostics);

}  // namespace sluice::embed
