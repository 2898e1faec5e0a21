#include "app/serve_grammar.h"

#include "app/configuration_grammar.h"
#include "app/serve_configuration.h"
#include "base/duration.h"
#include "base/text.h"
#include "net/endpoint.h"
#include "net/http/message.h"
#include "rules/formats.h"

#include <optional>
#include <string>

namespace sluice::app {
namespace {

// What nothing means differs from one time to the next: at once, or never. Where it is useful, the
// key says so and takes any duration.
std::optional<Diagnostic> check_time(std::string_view text) {
  const Parsed<Nanos> time = parse_duration(text);
  if (!time) return time.error();
  if (*time >= std::chrono::milliseconds{1}) return std::nullopt;
  return Diagnostic{std::string{text} + " leaves no time at all", "write at least 1ms, as in 10s"};
}

std::optional<Diagnostic> check_one_host(std::string_view text) {
  if (!text.starts_with('*')) return rules::kHostFormat.check(text);
  return Diagnostic{quoted(text) + " is many hosts, and one is needed",
                    "write the name itself, as in api.example.com"};
}

}  // namespace

using config::flag;
using config::Format;
using config::Key;
using config::list_of;
using config::map_of;
using config::number;
using config::Section;
using config::text;
using config::word;

const Format kEndpointFormat{"ENDPOINT", "^(unix:.+|.*:[0-9]+)$", mistake_of<net::Endpoint::parse>};
const Format kTimeFormat{"DURATION", "^([0-9]+(ns|us|ms|s|m|h|d|w))+$", check_time};
const Format kOneHostFormat{"HOST", "^[^/*]+$", check_one_host};

const Section& listener_section() {
  static const Section kSection{
      .name = "listener",
      .meaning = "One listener, with what concerns it alone.",
      .keys = {{.name = "address",
                .shape = text(kEndpointFormat),
                .meaning = "Where to listen. A socket that the service manager has opened there is "
                           "used as it is.",
                .required = true,
                .examples = {"':8443'"}},
               {.name = "proxy_protocol",
                .shape = flag(),
                .meaning = "Whether connections begin with a header of the PROXY protocol (1 or 2) "
                           "that names the client. It is required then, and taken from "
                           "`clients.trusted_proxies` only.",
                .fallback = "false"}}};
  return kSection;
}

const Section& listen_section() {
  static const Section kSection{
      .name = "listen",
      .meaning = "Where to listen. A listener that is not named is off.",
      .keys = {{.name = "gateway",
                .shape = text(kEndpointFormat) | map_of(listener_section) |
                         list_of(text(kEndpointFormat) | map_of(listener_section)),
                .meaning = "The reverse proxy: HTTP/1.1, with TLS if `gateway.tls` is given.",
                .examples = {"127.0.0.1:8080", "[':8080', 'unix:/run/sluice.sock']",
                             "{address: ':8443', proxy_protocol: true}"}},
               {.name = "admin",
                .shape = text(kEndpointFormat) | list_of(text(kEndpointFormat)),
                .meaning = "For operators: metrics, health and status over HTTP/1.1. Beyond the "
                           "loopback it needs `admin.token_file`.",
                .examples = {"127.0.0.1:9090", "unix:/run/sluice/admin.sock"}}}};
  return kSection;
}

const Section& certificate_section() {
  static const Section kSection{.name = "certificate",
                                .meaning = "A certificate and its key.",
                                .keys = {{.name = "certificate",
                                          .shape = text(),
                                          .meaning = "PEM: the own one first, then the chain.",
                                          .required = true,
                                          .examples = {"server.pem"}},
                                         {.name = "key",
                                          .shape = text(),
                                          .meaning = "PEM, without a password.",
                                          .required = true,
                                          .examples = {"server.key"}}}};
  return kSection;
}

const Section& tls_section() {
  static const Section kSection{
      .name = "tls",
      .meaning = "TLS of the gateway's listeners.",
      .keys = {{.name = "certificates",
                .shape = list_of(map_of(certificate_section)),
                .meaning =
                    "Chosen by the name that a client asks for; the first serves all others.",
                .required = true},
               {.name = "client_ca",
                .shape = text(),
                .meaning = "Who vouches for clients, as PEM. With it, clients may present "
                           "certificates.",
                .examples = {"clients.pem"}},
               {.name = "client_certificates",
                .shape = word({"optional", "required"}),
                .meaning = "Whether they must. The subject of a verified one, or its first URI or "
                           "DNS name where it has none, is the client's `user`.",
                .fallback = "optional"}},
      .needs = {{"client_certificates", "client_ca"}},
      .hints = {{"require_client", "write client_certificates: required"}}};
  return kSection;
}

const Section& tracing_section() {
  static const Section kSection{
      .name = "tracing",
      .meaning = "W3C Trace Context. `traceparent` and `tracestate` are passed on in any case.",
      .keys = {{.name = "start",
                .shape = flag(),
                .meaning = "Whether a request without a `traceparent`, or with a malformed one, "
                           "begins a new trace.",
                .fallback = "true"},
               {.name = "sampled",
                .shape = flag(),
                .meaning = "Whether servers are asked to record the traces that begin here.",
                .fallback = "true"}}};
  return kSection;
}

namespace {

config::Shape families() {
  return list_of(word({"ietf-11", "ietf-next", "ietf-07", "triplet", "x-ratelimit-delta",
                       "x-ratelimit-epoch", "x-rate-limit-epoch"}));
}

}  // namespace

const Section& rate_headers_section() {
  static const Section kSection{
      .name = "rate_headers",
      .meaning = "Which headers tell clients where they stand, when and under which names.",
      .keys = {{.name = "families",
                .shape = families(),
                .meaning = "Those that are written.",
                .fallback = "[ietf-11]"},
               {.name = "when",
                .shape = word({"always", "on_refusal", "below"}),
                .meaning = "On every answer that may have them, on refusals alone, or also once "
                           "less than `below_percent` of a limit is left.",
                .fallback = "always"},
               {.name = "below_percent",
                .shape = number(1, 100),
                .meaning = "For `when: below`.",
                .fallback = "20"},
               {.name = "only_tightest",
                .shape = flag(),
                .meaning = "Of several limits, only the one that binds.",
                .fallback = "false"},
               {.name = "partition_secret_file",
                .shape = text(),
                .meaning = "With it, lists of `ietf-11` and `ietf-next` say by `pk` whose limits "
                           "they show: a hash of the client under this secret.",
                .examples = {"partition.secret"}},
               {.name = "rename",
                .shape = map_of(renamed_section),
                .meaning = "Other names for some of them."}},
      .needs = {{"below_percent", "when"}}};
  return kSection;
}

const Section& renamed_section() {
  static const Section kSection{
      .name = "renamed",
      .meaning = "From the usual name of a header to another.",
      .keys = {},
      .others = config::OtherKeys{.what = "HEADER",
                                  .format = &rules::kHeaderNameFormat,
                                  .shape = text(),
                                  .meaning = "Its other name, or `none`: it is left out."}};
  return kSection;
}

const Section& gateway_section() {
  static const Section kSection{
      .name = "gateway",
      .meaning = "How the gateway treats connections and requests.",
      .keys = {
          {.name = "tls", .shape = map_of(tls_section), .meaning = "TLS to clients."},
          {.name = "body_max",
           .shape = text(kMemoryFormat),
           .meaning = "The largest body that is passed on; larger ones are answered 413. By "
                      "default any.",
           .examples = {"10MiB"}},
          {.name = "head_within",
           .shape = text(kTimeFormat),
           .meaning = "The longest time for a request's head, from its first byte on.",
           .fallback = "10s"},
          {.name = "idle_for",
           .shape = text(kTimeFormat),
           .meaning = "How long a connection may wait for its next request.",
           .fallback = "60s"},
          {.name = "request_line_max",
           .shape = text(kMemoryFormat),
           .meaning = "The longest request line; longer ones are answered 414.",
           .fallback = "8KiB"},
          {.name = "headers_max",
           .shape = text(kMemoryFormat),
           .meaning = "The most that all header lines may have; more is answered 431. With the "
                      "request line at most 30KiB.",
           .fallback = "16KiB"},
          {.name = "header_lines",
           .shape = number(1, net::kHeadersMax),
           .meaning = "The most header lines; more are answered 431.",
           .fallback = "100"},
          {.name = "body_rate",
           .shape = number(0, 1'000'000'000),
           .meaning =
               "Bytes per second that a body has to bring at least, or 408. 0: however slow.",
           .fallback = "200"},
          {.name = "body_every",
           .shape = text(kTimeFormat),
           .meaning = "How often that is looked at.",
           .fallback = "10s"},
          {.name = "written_rate",
           .shape = number(0, 1'000'000'000),
           .meaning = "Bytes per second that a client has to take at least of an answer that waits "
                      "for it, or it is closed. 0: however slow, but something.",
           .fallback = "200"},
          {.name = "written_within",
           .shape = text(kTimeFormat),
           .meaning = "How often that is looked at.",
           .fallback = "30s"},
          {.name = "requests_per_connection",
           .shape = number(1, 1'000'000'000),
           .meaning = "After so many a connection is closed.",
           .fallback = "10000"},
          {.name = "connections",
           .shape = number(1, 1'000'000),
           .meaning = "The most connections of each worker.",
           .fallback = "50000"},
          {.name = "connections_per_address",
           .shape = number(1, 1'000'000),
           .meaning = "The most connections of one address, or of one /64 of IPv6, to each "
                      "worker. By default any number."},
          {.name = "headers",
           .shape = word({"none"}) | families() | map_of(rate_headers_section),
           .meaning = "Which headers tell clients where they stand; see "
                      "[headers.md](headers.md).",
           .fallback = "[ietf-11]",
           .examples = {"[ietf-11, x-rate-limit-epoch]"}},
          {.name = "forwarded",
           .shape = word({"x_forwarded", "forwarded", "both", "none"}),
           .meaning =
               "How servers are told of the client: by `X-Forwarded-For`, `-Proto`, `-Host` "
               "and `-Port`, by `Forwarded` (RFC 7239), by both, or not at all. What clients "
               "send under these names never passes, unless they are trusted proxies.",
           .fallback = "x_forwarded"},
          {.name = "tracing",
           .shape = map_of(tracing_section),
           .meaning = "Traces; without it none begin here."},
          {.name = "trust_request_ids",
           .shape = flag(),
           .meaning = "Whether an `X-Request-Id` of the client is passed on.",
           .fallback = "false"},
          {.name = "via",
           .shape = flag(),
           .meaning = "Whether `Via` is added to requests and responses. Some servers do not "
                      "compress for proxies (nginx without `gzip_proxied`). Without it a request "
                      "that goes in circles is not noticed.",
           .fallback = "true"}}};
  return kSection;
}

const Section& access_log_section() {
  static const Section kSection{
      .name = "access_log",
      .meaning = "One line for each request. Secrets are hidden.",
      .keys = {{.name = "file",
                .shape = text(),
                .meaning = "Where lines are appended; `-` is standard output.",
                .fallback = "-",
                .examples = {"/var/log/sluice/access.log"}},
               {.name = "format",
                .shape = word({"text", "json"}),
                .meaning = "`text` is nginx's combined format and the decision; `json` says more. "
                           "`sluice replay --rules` reads both.",
                .fallback = "text"},
               {.name = "refusals_per_second",
                .shape = number(1, 1'000'000),
                .meaning = "Of refusals, each worker writes at most so many; the next one says how "
                           "many were left out.",
                .fallback = "100"}}};
  return kSection;
}

const Section& admin_section() {
  static const Section kSection{
      .name = "admin",
      .meaning =
          "Who may ask the admin listener. `/livez`, `/readyz` and `/healthz` are open to "
          "everybody.",
      .keys = {{.name = "token_file",
                .shape = text(),
                .meaning = "A file with a token of at least 16 characters; clients present it as "
                           "`Authorization: Bearer TOKEN`.",
                .examples = {"admin.token"}}}};
  return kSection;
}

const Section& drain_section() {
  static const Section kSection{
      .name = "drain",
      .meaning =
          "How the server ends when it is told to: `/readyz` says no at once, then it waits, "
          "then it takes no more connections and finishes what is under way.",
      .keys = {{.name = "delay",
                .shape = text(rules::kDurationFormat),
                .meaning = "How long it goes on taking connections, so that load balancers notice; "
                           "a little more than they take between two probes.",
                .fallback = "0s",
                .examples = {"10s"}},
               {.name = "within",
                .shape = text(rules::kDurationFormat),
                .meaning = "How long requests under way may take after that; 0s cuts them off.",
                .fallback = "30s"}}};
  return kSection;
}

std::vector<Key> serve_keys() {
  return {{.name = "listen", .shape = map_of(listen_section), .meaning = "Where to listen."},
          {.name = "workers",
           .shape = number(0, 1024),
           .meaning = "Threads that serve; 0 is one for each processor.",
           .fallback = "0"},
          {.name = "upstreams",
           .shape = map_of(upstreams_section),
           .meaning = "Where requests are passed on to."},
          {.name = "routes",
           .shape = list_of(map_of(route_section)),
           .meaning = "Which requests go where."},
          {.name = "gateway",
           .shape = map_of(gateway_section),
           .meaning = "How the gateway treats connections and requests."},
          {.name = "access_log",
           .shape = map_of(access_log_section),
           .meaning = "One line for each request; without it there is no such log."},
          {.name = "admin",
           .shape = map_of(admin_section),
           .meaning = "Who may ask the admin listener."},
          {.name = "drain",
           .shape = map_of(drain_section),
           .meaning = "How the server ends when it is told to."}};
}

}  // namespace sluice::app
