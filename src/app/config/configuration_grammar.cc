#include "app/config/configuration_grammar.h"

#include "app/config/api_key_grammar.h"
#include "app/config/configuration.h"
#include "app/config/serve_configuration.h"
#include "base/text.h"
#include "config/reference.h"
#include "config/schema.h"
#include "rules/formats.h"
#include "rules/rule_grammar.h"
#include "store/local/mapping.h"

#include <fmt/format.h>

#include <utility>

namespace sluice::app {

using config::decimal;
using config::flag;
using config::Format;
using config::list_of;
using config::map_of;
using config::number;
using config::Section;
using config::text;
using config::word;

namespace {

// One, or a list of them.
config::Shape some(const config::Shape& one) { return one | list_of(one); }

}  // namespace

// Who comes through a Unix socket has the address 0.0.0.0 here, which nobody has in a network.
Parsed<IpRange> parse_proxy(std::string_view text) {
  return rules::parse_address_range(text == "unix" ? "0.0.0.0" : text);
}

const Format kProxyFormat{"PROXY", "^([0-9A-Fa-f.:]+(/[0-9]{1,3})?|unix)$",
                          mistake_of<parse_proxy>};

namespace {

// Less than this and nobody's count would last.
const Format kTableFormat{
    kSizeFormat.name, kSizeFormat.pattern, [](std::string_view text) -> std::optional<Diagnostic> {
      const auto parsed = parse_size(text);
      if (!parsed) return parsed.error();
      if (*parsed >= store::Mapping::kMemoryMin) return std::nullopt;
      return Diagnostic{.message = fmt::format("{} is too little for a table of counts", text),
                        .remedy = "use at least 4MiB"};
    }};

}  // namespace

const Format kSubjectFormat{"SUBJECT", "^(ip|api_key|user|tenant)=.+$",
                            mistake_of<engine::Subject::parse>};

const Section& list_entry_section() {
  static const Section kSection{
      .name = "list_entry",
      .meaning = "A client on a list.",
      .keys = {{.name = "subject",
                .shape = text(kSubjectFormat),
                .meaning = "An address or a range of them, the name of an API key, a user, a "
                           "tenant.",
                .required = true,
                .examples = {"ip=203.0.113.0/24", "user=mallory"},
                .formerly = {"who"}},
               {.name = "expires",
                .shape = text(kInstantFormat),
                .meaning = "From this instant on it has no effect; by default it never expires.",
                .examples = {"2027-01-01T00:00:00Z"},
                .formerly = {"until"}},
               {.name = "note", .shape = text(), .meaning = "Why, for whoever finds it later."}}};
  return kSection;
}

const Section& lists_section() {
  static const Section kSection{
      .name = "lists",
      .meaning = "Who passes uncounted, and who does not pass. `allow` stands above `deny`.",
      .keys = {{.name = "allow",
                .shape = some(text(kSubjectFormat) | map_of(list_entry_section)),
                .meaning = "Passes without being counted by any rule.",
                .examples = {"[ip=10.0.0.0/8, api_key=monitoring]"}},
               {.name = "deny",
                .shape = some(text(kSubjectFormat) | map_of(list_entry_section)),
                .meaning = "Is rejected with 403.",
                .examples = {"[{subject: ip=203.0.113.0/24, expires: 2027-01-01T00:00:00Z}]"}}}};
  return kSection;
}

const Section& override_section() {
  static const Section kSection{
      .name = "override",
      .meaning =
          "Other limits for one subject: amount and burst are multiplied in rules whose `per` "
          "names the kind of subject.",
      .keys = {{.name = "subject",
                .shape = text(kSubjectFormat),
                .meaning = "As on lists.",
                .required = true,
                .examples = {"user=acme"},
                .formerly = {"who"}},
               {.name = "multiplier",
                .shape = decimal(1, engine::kPermilleMax),
                .meaning = "How many times as much, with at most three digits behind the point.",
                .required = true,
                .examples = {"2", "0.5"},
                .formerly = {"factor"}},
               {.name = "expires",
                .shape = text(kInstantFormat),
                .meaning = "From this instant on it has no effect; by default it never expires.",
                .examples = {"2027-01-01T00:00:00Z"},
                .formerly = {"until"}},
               {.name = "note", .shape = text(), .meaning = "Why, for whoever finds it later."}}};
  return kSection;
}

const Section& state_section() {
  static const Section kSection{
      .name = "state",
      .meaning = "Where counts are kept.",
      .keys = {{.name = "memory",
                .shape = text(kTableFormat),
                .meaning = "Size of the counter table; it never grows. About 32 bytes for each key "
                           "in use at the same time.",
                .fallback = "64MiB",
                .examples = {"64MiB", "2GiB"}},
               {.name = "file",
                .shape = text(),
                .meaning = "Keeps the counts across restarts; without it they are lost with the "
                           "process.",
                .examples = {"/var/lib/sluice/state"}}}};
  return kSection;
}

const Section& api_keys_section() {
  static const Section kSection{
      .name = "api_keys",
      .meaning = "Keys that clients present, known by their hashes.",
      .keys = {{.name = "header",
                .shape = some(text(rules::kHeaderNameFormat)),
                .meaning = "Headers that may hold the key.",
                .fallback = "x-api-key, unless another place is named",
                .examples = {"x-api-key"}},
               {.name = "query",
                .shape = some(text(rules::kFieldNameFormat)),
                .meaning = "Query fields that may hold it. Keys in URLs end up in logs.",
                .examples = {"api_key"}},
               {.name = "cookie",
                .shape = some(text(rules::kFieldNameFormat)),
                .meaning = "Cookies that may hold it.",
                .examples = {"key"}},
               {.name = "basic",
                .shape = flag(),
                .meaning = "The user name of `Authorization: Basic` may be the key.",
                .fallback = "false"},
               {.name = "file",
                .shape = text(),
                .meaning = "The keys by their hashes: a [key_file](#key_file).",
                .required = true,
                .examples = {"keys.yaml"}},
               {.name = "secret_file",
                .shape = text(),
                .meaning = "The secret of hashes that are keyed (`hmac-sha256:`).",
                .examples = {"/etc/sluice/key-secret"}}}};
  return kSection;
}

const Section& jwt_section() {
  static const Section kSection{
      .name = "jwt",
      .meaning = "Signed tokens (JWT) in `Authorization: Bearer`.",
      .keys = {{.name = "jwks_file",
                .shape = some(text()),
                .meaning = "Files of public keys, as JWKS.",
                .examples = {"jwks.json"},
                .formerly = {"jwks"}},
               {.name = "public_key_file",
                .shape = some(text()),
                .meaning = "Files of public keys, as PEM.",
                .examples = {"issuer.pem"},
                .formerly = {"public_key"}},
               {.name = "secret_file",
                .shape = text(),
                .meaning = "A file with the shared secret of HS256.",
                .examples = {"/etc/sluice/token-secret"}},
               {.name = "algorithms",
                .shape = list_of(word({"HS256", "RS256", "ES256", "EdDSA"})),
                .meaning = "Algorithms that are accepted; by default those of the keys.",
                .examples = {"[ES256]"}},
               {.name = "issuer",
                .shape = some(text()),
                .meaning = "`iss` must be one of these; by default it may be any.",
                .examples = {"https://login.example.com"}},
               {.name = "audience",
                .shape = some(text()),
                .meaning = "`aud` must contain one of these; by default it may be any.",
                .examples = {"api"}},
               {.name = "clock_skew",
                .shape = text(rules::kDurationFormat),
                .meaning = "How far the issuer's clock may be from ours.",
                .fallback = "30s",
                .formerly = {"leeway"}},
               {.name = "user",
                .shape = text(rules::kFieldNameFormat),
                .meaning = "The claim that names the user.",
                .fallback = "sub"},
               {.name = "tenant",
                .shape = text(rules::kFieldNameFormat),
                .meaning = "The claim that names the tenant.",
                .examples = {"org_id"}},
               {.name = "tier",
                .shape = text(rules::kFieldNameFormat),
                .meaning = "The claim that names the tier.",
                .examples = {"plan"}}},
      .at_least_one = {{"jwks_file", "public_key_file", "secret_file"}}};
  return kSection;
}

const Section& geo_section() {
  static const Section kSection{.name = "geo",
                                .meaning = "Where addresses are, by files in MaxMind's format.",
                                .keys = {{.name = "country_file",
                                          .shape = text(),
                                          .meaning = "The database of countries.",
                                          .examples = {"GeoLite2-Country.mmdb"},
                                          .formerly = {"country"}},
                                         {.name = "asn_file",
                                          .shape = text(),
                                          .meaning = "The database of autonomous systems.",
                                          .examples = {"GeoLite2-ASN.mmdb"},
                                          .formerly = {"asn"}}},
                                .at_least_one = {{"country_file", "asn_file"}}};
  return kSection;
}

const Section& clients_section() {
  static const Section kSection{
      .name = "clients",
      .meaning = "How clients are told apart.",
      .keys = {
          {.name = "trusted_proxies",
           .shape = some(text(kProxyFormat)),
           .meaning = "Proxies whose forwarding headers are trusted; without any, the client is "
                      "the peer of the connection. Addresses, ranges of them, and `unix` for "
                      "peers that come through a Unix socket.",
           .examples = {"[10.0.0.0/8]", "unix"}},
          {.name = "client_ip_header",
           .shape = text(rules::kHeaderNameFormat),
           .meaning = "The one header that holds the client's address: `x-forwarded-for`, "
                      "`forwarded`, or another one that holds a single address. Needs trusted "
                      "proxies.",
           .fallback = "x-forwarded-for",
           .examples = {"forwarded", "cf-connecting-ip"},
           .formerly = {"address_from"}},
          {.name = "trusted_hops",
           .shape = number(1, 32),
           .meaning = "Instead of walking over trusted proxies: take this element of "
                      "X-Forwarded-For, counted from the right.",
           .examples = {"1"},
           .formerly = {"hops"}},
          {.name = "api_keys", .shape = map_of(api_keys_section), .meaning = "API keys."},
          {.name = "jwt",
           .shape = map_of(jwt_section),
           .meaning = "Signed tokens.",
           .formerly = {"tokens"}},
          {.name = "geo", .shape = map_of(geo_section), .meaning = "Countries and networks."},
          {.name = "require_auth",
           .shape = flag(),
           .meaning = "Whether clients that are not authenticated are rejected with 401, instead "
                      "of counting as anonymous. CORS preflights are exempt: browsers send no "
                      "credentials with them.",
           .fallback = "false",
           .formerly = {"require"}},
          {.name = "cors_preflight",
           .shape = word({"count", "exempt"}),
           .meaning = "What becomes of a CORS preflight (`OPTIONS` with `Origin` and "
                      "`Access-Control-Request-Method`): it counts as an anonymous request, "
                      "or no rule counts it. Denied and blocked clients stay so.",
           .fallback = "count",
           .hints = {{"ignore", "write exempt"},
                     {"skip", "write exempt"},
                     {"allow", "write exempt"}},
           .formerly = {"preflight"}}}};
  return kSection;
}

const Section& rules_from_section() {
  static const Section kSection{
      .name = "rules_from",
      .meaning =
          "Rules that are elsewhere: in a file of their own, or in the form of "
          "envoyproxy/ratelimit, trees of descriptors.",
      .keys =
          {{.name = "file",
            .shape = text(),
            .meaning = "A file with `rules` and what belongs to them, as `unmatched`, which is not "
                       "written here then. A server watches it; see "
                       "[run.md](run.md#rules-in-a-file-of-their-own).",
            .examples = {"rules.yaml"}},
           {.name = "poll_interval",
            .shape = text(kTimeFormat),
            .meaning =
                "How often a server reads the file whatever the watch says, for file systems "
                "that do not tell of changes.",
            .fallback = "60s",
            .formerly = {"every"}},
           {.name = "last_good_file",
            .shape = text(),
            .meaning = "Where a server keeps the rules in force, for a start at which the file is "
                       "wrong or missing. By default beside `state.file`, with `.rules` behind its "
                       "name; without that nowhere.",
            .examples = {"/var/lib/sluice/rules"},
            .formerly = {"last_good"}},
           {.name = "envoy",
            .shape = text(),
            .meaning = "The folder of files of envoyproxy/ratelimit. All below it are read, except "
                       "names that begin with a dot. A server watches it.",
            .examples = {"config"}},
           {.name = "evaluate",
            .shape = word({"independent"}),
            .meaning = "As that service does: each descriptor of a request is counted on its "
                       "own, rejected ones too.",
            .fallback = "independent"},
           {.name = "merge_domains",
            .shape = flag(),
            .meaning = "A domain may be in several files; `MERGE_DOMAIN_CONFIG` there.",
            .fallback = "false"},
           {.name = "shadow_mode",
            .shape = flag(),
            .meaning = "No request is rejected; the statuses of its descriptors tell. "
                       "`SHADOW_MODE` there.",
            .fallback = "false"},
           {.name = "quota_mode",
            .shape = flag(),
            .meaning = "A request is rejected only when all of its descriptors are over their "
                       "limits. `QUOTA_MODE` there.",
            .fallback = "false"}},
      .exactly_one = {{"file", "envoy"}},
      .needs = {{"poll_interval", "file"},
                {"last_good_file", "file"},
                {"evaluate", "envoy"},
                {"merge_domains", "envoy"},
                {"shadow_mode", "envoy"},
                {"quota_mode", "envoy"}}};
  return kSection;
}

const Section& configuration_section() {
  static const Section kSection = [] {
    Section section{.name = "configuration",
                    .meaning = "The whole file.",
                    .keys = {{.name = "state",
                              .shape = map_of(state_section),
                              .meaning = "Where counts are kept."},
                             {.name = "clients",
                              .shape = map_of(clients_section),
                              .meaning = "How clients are told apart."},
                             {.name = "lists",
                              .shape = map_of(lists_section),
                              .meaning = "Who passes uncounted, and who does not pass."},
                             {.name = "overrides",
                              .shape = list_of(map_of(override_section)),
                              .meaning = "Other limits for single subjects."}},
                    .at_least_one = {{"rules", "rules_from"}},
                    .hints = rules::rules_file_section().hints};
    for (config::Key& key : serve_keys()) section.keys.push_back(std::move(key));
    for (config::Key key : rules::rules_file_section().keys) {
      key.required = false;  // they may be elsewhere
      section.keys.push_back(std::move(key));
    }
    section.keys.push_back({.name = "rules_from",
                            .shape = map_of(rules_from_section),
                            .meaning = "Rules that are elsewhere."});
    return section;
  }();
  return kSection;
}

config::Shape configuration_shape() { return map_of(configuration_section); }

std::string configuration_schema() {
  return config::json_schema(configuration_shape(),
                             {.id = "https://sluice.invalid/schema/configuration.json",
                              .title = "Configuration of Sluice"});
}

std::string configuration_reference() {
  return "# Configuration\n\n"
         "Every key of the file, as `sluice check` knows it. This page is written by `sluice "
         "check\n"
         "--print-reference`; [rules.md](rules.md) says how to begin.\n\n" +
         config::reference_markdown(configuration_shape()) +
         "\n# API keys\n\n"
         "Every key of the file that `clients.api_keys.file` names. `sluice keys` writes and lists "
         "it;\n"
         "[identity.md](identity.md#api-keys) tells what it is good for.\n\n" +
         config::reference_markdown(key_file_shape());
}

}  // namespace sluice::app
