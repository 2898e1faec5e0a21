#include "embed/config/engine_grammar.h"

#include "config/formats.h"
#include "embed/config/api_key_grammar.h"
#include "embed/config/server_keys.h"
#include "engine/overrides.h"
#include "engine/subject.h"
#include "rules/formats.h"
#include "rules/rule_grammar.h"
#include "store/local/mapping.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace sluice::embed {

using config::decimal;
using config::flag;
using config::Format;
using config::kSizeFormat;
using config::kTimeFormat;
using config::list_of;
using config::map_of;
using config::mistake_of;
using config::number;
using config::parse_size;
using config::Section;
using config::text;
using config::word;

namespace {

// One, or a list of them.
config::Shape some(const config::Shape& one) { return one | list_of(one); }

}  // namespace

// A peer at a Unix socket has the address 0.0.0.0, which no host of a network has.
Parsed<IpRange> parse_proxy(std::string_view text) {
  return rules::parse_address_range(text == "unix" ? "0.0.0.0" : text);
}

const Format kProxyFormat{"PROXY", "^([0-9A-Fa-f.:]+(/[0-9]{1,3})?|unix)$",
                          mistake_of<parse_proxy>};

namespace {

// With less memory no count would last.
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
               {.name = "note", .shape = text(), .meaning = "The reason, for operators."}}};
  return kSection;
}

const Section& lists_section() {
  static const Section kSection{
      .name = "lists",
      .meaning =
          "Clients that no rule counts, and clients that are rejected. `allow` precedes `deny`.",
      .keys = {{.name = "allow",
                .shape = some(text(kSubjectFormat) | map_of(list_entry_section)),
                .meaning = "Allowed without being counted by any rule.",
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
               {.name = "note", .shape = text(), .meaning = "The reason, for operators."}}};
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
  static const Section kSection{
      .name = "geo",
      .meaning = "Countries and networks of addresses, from files in MaxMind's format.",
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
      .meaning = "How clients are identified.",
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
           .meaning = "How a CORS preflight (`OPTIONS` with `Origin` and "
                      "`Access-Control-Request-Method`) counts: as an anonymous request, or under "
                      "no rule. Deny lists and blocks apply in both cases.",
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
          "Rules in a file of their own, or in the files of envoyproxy/ratelimit (trees of "
          "descriptors).",
      .keys = {{.name = "file",
                .shape = text(),
                .meaning = "A file with `rules` and the keys beside them, as `unmatched`, which "
                           "then may not stand here. A server watches it; see "
                           "[run.md](run.md#rules-in-a-file-of-their-own).",
                .examples = {"rules.yaml"}},
               {.name = "poll_interval",
                .shape = text(kTimeFormat),
                .meaning = "How often a server reads the file without a notification, for file "
                           "systems that send none.",
                .fallback = "60s",
                .formerly = {"every"}},
               {.name = "last_good_file",
                .shape = text(),
                .meaning = "Where a server saves the rules in force, for a start at which the file "
                           "is wrong or missing. By default `state.file` with `.rules` appended; "
                           "without `state.file` they are not saved.",
                .examples = {"/var/lib/sluice/rules"},
                .formerly = {"last_good"}},
               {.name = "envoy",
                .shape = text(),
                .meaning = "The folder with the files of envoyproxy/ratelimit. All files below it "
                           "are read, except names that begin with a dot. A server watches it.",
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
                .meaning = "No request is rejected; the statuses of its descriptors show what "
                           "would have been. `SHADOW_MODE` there.",
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

Section configuration_section_with(std::vector<config::Key> server_keys) {
  Section section{
      .name = "configuration",
      .meaning = "The whole file.",
      .keys = {{.name = "state",
                .shape = map_of(state_section),
                .meaning = "Where counts are kept."},
               {.name = "clients",
                .shape = map_of(clients_section),
                .meaning = "How clients are identified."},
               {.name = "lists",
                .shape = map_of(lists_section),
                .meaning = "Clients that no rule counts, and clients that are rejected."},
               {.name = "overrides",
                .shape = list_of(map_of(override_section)),
                .meaning = "Other limits for single subjects."}},
      .at_least_one = {{"rules", "rules_from"}},
      .hints = {{"location", "write routes: [{path: /x/**, upstream: app}]"},
                {"proxy_pass",
                 "write upstreams: {app: {servers: [127.0.0.1:3000]}}, and routes: [{path: /**, "
                 "upstream: app}]"},
                {"timeout",
                 "write response_timeout or request_timeout in an upstream, or header_timeout "
                 "under 'gateway'"},
                {"zone", rules::kZoneRemedy}}};
  for (const config::Hint& hint : rules::rules_file_section().hints) section.hints.push_back(hint);
  for (config::Key& key : server_keys) section.keys.push_back(std::move(key));
  for (config::Key key : rules::rules_file_section().keys) {
    key.required = false;  // rules may be elsewhere
    section.keys.push_back(std::move(key));
  }
  section.keys.push_back({.name = "rules_from",
                          .shape = map_of(rules_from_section),
                          .meaning = "Rules in a file of their own, or Envoy's."});
  return section;
}

const Section& engine_section() {
  static const Section kSection = [] {
    std::vector<config::Key> server_keys;
    for (const std::string_view name : kServerKeys) {
      server_keys.push_back({.name = name, .shape = config::anything(), .meaning = {}});
    }
    return configuration_section_with(std::move(server_keys));
  }();
  return kSection;
}

}  // namespace sluice::embed
