#include "app/config/without_effect.h"

#include "base/text.h"
#include "engine/subject.h"
#include "frontend/gateway/gateway_config.h"
#include "rules/per_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::app {
namespace {

using engine::Subject;
using rules::Per;

constexpr std::string_view kNeedsCredentials = "write clients.api_keys or clients.jwt";
constexpr std::string_view kNeedsApiKeys = "write clients.api_keys";
constexpr std::string_view kNeedsJwt = "write clients.jwt";

// Why a value is never known, and the remedy.
struct Unknown {
  std::string_view why;
  std::string_view remedy;
};
using Why = std::optional<Unknown>;  // nothing: it may be known

bool has_client_ca(const gateway::GatewayConfig& gateway) {
  return gateway.tls_files && !gateway.tls_files->client_ca_file.empty();
}

// The values that a gateway can know of its clients.
class Knowable {
 public:
  explicit Knowable(const Configuration& configuration)
      : clients_(configuration.clients),
        certificates_(has_client_ca(gateway::config_in(configuration.serve.frontends))) {}

  [[nodiscard]] Why authenticated() const {
    if (clients_.api_keys || clients_.jwt || certificates_) return {};
    return Unknown{.why = "no API keys, tokens or client certificates are configured",
                   .remedy = kNeedsCredentials};
  }
  [[nodiscard]] Why user() const { return authenticated(); }
  [[nodiscard]] Why api_key() const {
    if (clients_.api_keys) return {};
    return Unknown{.why = "no API keys are configured", .remedy = kNeedsApiKeys};
  }
  [[nodiscard]] Why claim() const {
    if (clients_.jwt) return {};
    return Unknown{.why = "no tokens are configured", .remedy = kNeedsJwt};
  }
  [[nodiscard]] Why tenant() const {
    if (clients_.api_keys || (clients_.jwt && !clients_.jwt->policy.tenant_claim.empty())) {
      return {};
    }
    return Unknown{.why = "no API keys are configured, and no claim that says it",
                   .remedy = "write clients.api_keys or clients.jwt.tenant"};
  }
  [[nodiscard]] Why tier() const {
    if (clients_.api_keys || (clients_.jwt && !clients_.jwt->policy.tier_claim.empty())) {
      return {};
    }
    return Unknown{.why = "no API keys are configured, and no claim that says it",
                   .remedy = "write clients.api_keys or clients.jwt.tier"};
  }
  [[nodiscard]] Why country() const {
    if (!clients_.country_file.empty()) return {};
    return Unknown{.why = "no database of countries is configured",
                   .remedy = "write clients.geo.country_file"};
  }
  [[nodiscard]] Why asn() const {
    if (!clients_.asn_file.empty()) return {};
    return Unknown{.why = "no database of networks is configured",
                   .remedy = "write clients.geo.asn_file"};
  }
  [[nodiscard]] Why trusted_header() const {
    const auto& address = clients_.address;
    if (!address.trusted_proxies.empty() ||
        address.source == identity::AddressSource::trusted_hops) {
      return {};
    }
    return Unknown{.why = "a header counts only from a trusted proxy, and there is none",
                   .remedy = "write clients.trusted_proxies"};
  }
  [[nodiscard]] static Why descriptor() {
    return Unknown{.why = "requests to the gateway have no descriptors",
                   .remedy = "use a header, a query field or the path instead"};
  }

  [[nodiscard]] Why of(const Per& per) const {
    switch (per.kind) {
      case Per::Kind::user: return user();
      case Per::Kind::api_key:
      case Per::Kind::attribute: return api_key();
      case Per::Kind::tenant: return tenant();
      case Per::Kind::country: return country();
      case Per::Kind::asn: return asn();
      case Per::Kind::claim: return claim();
      case Per::Kind::descriptor: return descriptor();
      case Per::Kind::ip:
      case Per::Kind::method:
      case Per::Kind::route:
      case Per::Kind::path:
      case Per::Kind::header:
      case Per::Kind::query: break;
    }
    return {};
  }
  [[nodiscard]] Why of(Subject::Kind kind) const {
    switch (kind) {
      case Subject::Kind::user: return user();
      case Subject::Kind::api_key: return api_key();
      case Subject::Kind::tenant: return tenant();
      case Subject::Kind::ip: break;
    }
    return {};
  }
  // As in tiers.by.
  [[nodiscard]] Why of(std::string_view by) const {
    if (by == "client.tier") return tier();
    if (by == "client.tenant") return tenant();
    if (by == "client.country") return country();
    if (by == "client.asn") return asn();
    if (by == "client.authenticated") return authenticated();
    if (by.starts_with("claim.")) return claim();
    if (by.starts_with("attribute.")) return api_key();
    return {};
  }
  [[nodiscard]] Why of(const rules::AmountFrom& from) const {
    switch (from.kind) {
      case rules::AmountFrom::Kind::claim: return claim();
      case rules::AmountFrom::Kind::attribute: return api_key();
      case rules::AmountFrom::Kind::header: return trusted_header();
    }
    return {};
  }

 private:
  const embed::ClientsConfig& clients_;
  bool certificates_;
};

class Warnings {
 public:
  Warnings(const Configuration& configuration, config::Diagnostics& diagnostics)
      : configuration_(configuration), diagnostics_(diagnostics), knowable_(configuration) {}

  // As the gateway evaluates it.
  void rule(const rules::Rule& rule) {
    if (rule.domain != rules::kDefaultDomain) {
      return warn(rule.place,
                  fmt::format("rule '{}' has no effect: it is in the domain {}, and the gateway "
                              "asks the domain '{}' only",
                              rule.name, sluice::quoted(rule.domain), rules::kDefaultDomain),
                  "leave out 'domain', or ask that domain from a program (docs/embed.md)");
    }
    if (match(rule)) return;  // nothing else in it matters then
    for (const Per& per : rule.per) counted(rule, per);
    if (rule.tiers) {
      never_known(knowable_.of(rule.tiers->by), rule.place,
                  fmt::format("rule '{}': 'tiers' by {} has no effect", rule.name, rule.tiers->by));
    }
    amounts(rule, rule.limits);
    if (!rule.tiers) return;
    for (const auto& [tier, limits] : rule.tiers->values) amounts(rule, limits);
  }

  void trees(const embed::EnvoyConfig& envoy) {
    warn(envoy.place,
         fmt::format("no listener asks the trees in {}: they have no effect", envoy.folder),
         "write 'rules' for the gateway; `sluice explain` answers from these trees");
  }

  void required_proof() {
    if (!configuration_.clients.policy.require_auth) return;
    const Why why = knowable_.authenticated();
    if (!why) return;
    warn(configuration_.clients.require_auth_place,
         fmt::format("every request is rejected with 401: {}", why->why), std::string{why->remedy});
  }

  void subject(const Subject& subject, const config::Place& place, std::string_view of) {
    never_known(knowable_.of(subject.kind), place,
                fmt::format("{} for '{}' has no effect", of, subject.written()));
  }

  void unused_override(const engine::Override& one, const config::Place& place) {
    if (knowable_.of(one.subject.kind) || configuration_.rules.rules.empty()) return;
    const bool is_used = std::ranges::any_of(
        configuration_.rules.rules,
        [&](const rules::Rule& rule) { return engine::is_per(rule, one.subject.kind); });
    if (is_used) return;
    const std::string_view kind = to_string(one.subject.kind);
    warn(place,
         fmt::format("the override for '{}' has no effect: no rule counts per {}",
                     one.subject.written(), kind),
         fmt::format("write per: {} in the rules that it is for, or leave it out", kind));
  }

 private:
  // Whether the rule never matches.
  bool match(const rules::Rule& rule) {
    const rules::Match& match = rule.match;
    const auto matches_never = [&](bool is_asked, std::string_view key, const Why& why) {
      if (!is_asked || !why) return false;
      warn(rule.place,
           fmt::format("rule '{}' never matches: it asks for '{}', but {}", rule.name, key,
                       why->why),
           fmt::format("{}, or leave it out of 'match'", why->remedy));
      return true;
    };
    return matches_never(!match.descriptor.empty(), "descriptor", Knowable::descriptor()) ||
           matches_never(!match.countries.empty(), "country", knowable_.country()) ||
           matches_never(!match.asns.empty(), "asn", knowable_.asn()) ||
           matches_never(!match.tiers.empty(), "tier", knowable_.tier()) ||
           matches_never(!match.tenants.empty(), "tenant", knowable_.tenant()) ||
           matches_never(!match.attributes.empty(), "attribute", knowable_.api_key()) ||
           matches_never(match.authenticated.value_or(false), "authenticated: true",
                         knowable_.authenticated());
  }

  // What the rule does when a value is always missing.
  [[nodiscard]] static std::string_view consequence(const rules::Rule& rule) {
    switch (rule.on_missing) {
      case rules::OnMissing::ip: return "it counts by address instead";
      case rules::OnMissing::skip: return "it has no effect";
      case rules::OnMissing::shared: return "all requests share one counter";
      case rules::OnMissing::reject: return "it rejects every request";
    }
    return {};
  }
  void counted(const rules::Rule& rule, const Per& per) {
    const Why why = knowable_.of(per);
    if (!why) return;
    warn(rule.place,
         fmt::format("rule '{}' counts per {}, which is never known ({}): {}", rule.name,
                     rules::per_text(per), why->why, consequence(rule)),
         std::string{why->remedy});
  }
  void amounts(const rules::Rule& rule, const std::vector<rules::RuleLimit>& limits) {
    for (const rules::RuleLimit& limit : limits) {
      if (!limit.from) continue;
      never_known(knowable_.of(*limit.from), limit.place,
                  fmt::format("rule '{}': the amount is never taken from '{}'", rule.name,
                              limit.from->name));
    }
  }

  void never_known(const Why& why, const config::Place& place, std::string_view what) {
    if (!why) return;
    warn(place, fmt::format("{}: {}", what, why->why),
         fmt::format("{}, or leave it out", why->remedy));
  }
  void warn(const config::Place& place, std::string message, std::string remedy) {
    config::Mistake mistake;
    mistake.severity = config::Severity::warning;
    mistake.place = place;
    mistake.message = std::move(message);
    mistake.remedy = std::move(remedy);
    diagnostics_.add(std::move(mistake));
  }

  const Configuration& configuration_;
  config::Diagnostics& diagnostics_;
  Knowable knowable_;
};

}  // namespace

void warn_of_no_effect(const Configuration& configuration, config::Diagnostics& diagnostics) {
  Warnings warnings{configuration, diagnostics};
  if (configuration.envoy) warnings.trees(*configuration.envoy);
  if (gateway::config_in(configuration.serve.frontends).listen.empty()) return;
  for (const rules::Rule& rule : configuration.rules.rules) warnings.rule(rule);
  warnings.required_proof();
  const embed::ExceptionsConfig& exceptions = configuration.exceptions;
  const embed::ExceptionPlaces& places = configuration.exception_places;
  for (std::size_t i = 0; i < exceptions.allow.size(); ++i) {
    warnings.subject(exceptions.allow[i].subject, places.allow[i], "the entry of lists.allow");
  }
  for (std::size_t i = 0; i < exceptions.deny.size(); ++i) {
    warnings.subject(exceptions.deny[i].subject, places.deny[i], "the entry of lists.deny");
  }
  for (std::size_t i = 0; i < exceptions.overrides.size(); ++i) {
    warnings.subject(exceptions.overrides[i].subject, places.overrides[i], "the override");
    warnings.unused_override(exceptions.overrides[i], places.overrides[i]);
  }
}

void warn_of_rules_without_effect(const Configuration& configuration,
                                  config::Diagnostics& diagnostics) {
  if (gateway::config_in(configuration.serve.frontends).listen.empty()) return;
  Warnings warnings{configuration, diagnostics};
  for (const rules::Rule& rule : configuration.rules.rules) warnings.rule(rule);
  const std::vector<engine::Override>& overrides = configuration.exceptions.overrides;
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    warnings.unused_override(overrides[i], configuration.exception_places.overrides[i]);
  }
}

}  // namespace sluice::app
