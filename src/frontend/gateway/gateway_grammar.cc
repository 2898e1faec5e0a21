#include "frontend/gateway/gateway_grammar.h"

#include "base/text.h"
#include "frontend/frontend.h"
#include "net/http/message.h"
#include "rules/formats.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::gateway {
namespace {

std::optional<Diagnostic> check_one_host(std::string_view text) {
  if (!text.starts_with('*')) return rules::kHostFormat.check(text);
  return Diagnostic{quoted(text) + " is many hosts, and one is needed",
                    "write the name itself, as in api.example.com"};
}

}  // namespace

using config::flag;
using config::Format;
using config::Key;
using config::kSizeFormat;
using config::kTimeFormat;
using config::list_of;
using config::map_of;
using config::number;
using config::Section;
using config::text;
using config::word;
using frontend::kEndpointFormat;

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
                .meaning = "Whether connections begin with a header of the PROXY protocol (version "
                           "1 or 2) that names the client. Then it is required, and accepted from "
                           "`clients.trusted_proxies` only.",
                .fallback = "false"}}};
  return kSection;
}

const Section& certificate_section() {
  static const Section kSection{
      .name = "certificate",
      .meaning = "A certificate and its key.",
      .keys = {{.name = "cert_file",
                .shape = text(),
                .meaning = "PEM: the server's certificate first, then its chain.",
                .required = true,
                .examples = {"server.pem"},
                .formerly = {"certificate"}},
               {.name = "key_file",
                .shape = text(),
                .meaning = "PEM, without a password.",
                .required = true,
                .examples = {"server.key"},
                .formerly = {"key"}}}};
  return kSection;
}

const Section& tls_section() {
  static const Section kSection{
      .name = "tls",
      .meaning = "TLS of the gateway's listeners.",
      .keys = {{.name = "certificates",
                .shape = list_of(map_of(certificate_section)),
                .meaning = "Chosen by SNI; the first is the default.",
                .required = true},
               {.name = "client_ca_file",
                .shape = text(),
                .meaning = "CAs of client certificates, as PEM. With it, clients may present "
                           "certificates.",
                .examples = {"clients.pem"},
                .formerly = {"client_ca"}},
               {.name = "client_auth",
                .shape = word({"optional", "required"}),
                .meaning = "Whether clients must present one. The subject of a verified "
                           "certificate, or its first URI or DNS name where it has none, is the "
                           "client's `user`.",
                .fallback = "optional",
                .formerly = {"client_certificates"}}},
      .needs = {{"client_auth", "client_ca_file"}},
      .hints = {{"require_client", "write client_auth: required"}}};
  return kSection;
}

const Section& tracing_section() {
  static const Section kSection{
      .name = "tracing",
      .meaning = "W3C Trace Context. `traceparent` and `tracestate` are always forwarded.",
      .keys = {{.name = "generate",
                .shape = flag(),
                .meaning = "Whether a request without a `traceparent`, or with a malformed one, "
                           "begins a new trace.",
                .fallback = "true",
                .formerly = {"start"}},
               {.name = "sampled",
                .shape = flag(),
                .meaning = "Whether the traces that begin here are marked as sampled.",
                .fallback = "true"}}};
  return kSection;
}

namespace {

config::Shape families() {
  return list_of(word({"ietf-11", "ietf-next", "ietf-07", "ietf-03", "x-ratelimit-delta",
                       "x-ratelimit-epoch", "x-rate-limit-epoch"}));
}

std::vector<config::Hint> former_families() { return {{"triplet", "write ietf-03"}}; }

}  // namespace

const Section& rate_headers_section() {
  static const Section kSection{
      .name = "rate_headers",
      .meaning =
          "Which headers tell clients their limits and what is left, when and under which names.",
      .keys = {{.name = "families",
                .shape = families(),
                .meaning = "The header families to send.",
                .fallback = "[ietf-11]",
                .hints = former_families()},
               {.name = "when",
                .shape = word({"always", "on_rejection", "below_threshold"}),
                .meaning = "On every response that may have them, on rejections only, or also when "
                           "less than `threshold_percent` of a limit is left.",
                .fallback = "always",
                .hints = {{"on_refusal", "write on_rejection"},
                          {"below", "write below_threshold"}}},
               {.name = "threshold_percent",
                .shape = number(1, 100),
                .meaning = "For `when: below_threshold`.",
                .fallback = "20",
                .formerly = {"below_percent"}},
               {.name = "most_restrictive_only",
                .shape = flag(),
                .meaning = "Of several limits, only the most restrictive one.",
                .fallback = "false",
                .formerly = {"only_tightest"}},
               {.name = "partition_secret_file",
                .shape = text(),
                .meaning = "With it, `ietf-11` and `ietf-next` send the partition key `pk`: a hash "
                           "of the client under this secret.",
                .examples = {"partition.secret"}},
               {.name = "rename",
                .shape = map_of(renamed_section),
                .meaning = "Other names for some of them."}},
      .needs = {{"threshold_percent", "when"}}};
  return kSection;
}

const Section& renamed_section() {
  static const Section kSection{
      .name = "renamed",
      .meaning = "From the usual name of a header to its new name.",
      .keys = {},
      .others = config::OtherKeys{.what = "HEADER",
                                  .format = &rules::kHeaderNameFormat,
                                  .shape = text(),
                                  .meaning = "Its new name, or `none` to omit it."}};
  return kSection;
}

const Section& gateway_section() {
  static const Section kSection{
      .name = "gateway",
      .meaning = "How the gateway treats connections and requests.",
      .keys =
          {{.name = "tls", .shape = map_of(tls_section), .meaning = "TLS to clients."},
           {.name = "max_body_size",
            .shape = text(kSizeFormat),
            .meaning =
                "The largest request body; larger ones are rejected with 413. By default any size.",
            .examples = {"10MiB"},
            .formerly = {"body_max"}},
           {.name = "header_timeout",
            .shape = text(kTimeFormat),
            .meaning = "The longest time for the headers of a request, from its first byte on.",
            .fallback = "10s",
            .formerly = {"head_within"}},
           {.name = "keepalive_timeout",
            .shape = text(kTimeFormat),
            .meaning = "How long a connection may wait for its next request.",
            .fallback = "60s",
            .formerly = {"idle_for"}},
           {.name = "max_request_line_size",
            .shape = text(kSizeFormat),
            .meaning = "The longest request line; longer ones are rejected with 414.",
            .fallback = "8KiB",
            .formerly = {"request_line_max"}},
           {.name = "max_headers_size",
            .shape = text(kSizeFormat),
            .meaning = "The largest size of all headers of a request; more is rejected with 431. "
                       "With the request line at most 30KiB.",
            .fallback = "16KiB",
            .formerly = {"headers_max"}},
           {.name = "max_headers_count",
            .shape = number(1, net::kHeadersMax),
            .meaning = "The most headers of a request; more are rejected with 431.",
            .fallback = "100",
            .formerly = {"header_lines"}},
           {.name = "min_upload_rate",
            .shape = number(0, 1'000'000'000),
            .meaning =
                "The slowest upload of a body, in bytes per second; slower ones are rejected "
                "with 408. 0: any rate.",
            .fallback = "200",
            .formerly = {"body_rate"}},
           {.name = "upload_rate_interval",
            .shape = text(kTimeFormat),
            .meaning = "How often `min_upload_rate` is checked.",
            .fallback = "10s",
            .formerly = {"body_every"}},
           {.name = "min_download_rate",
            .shape = number(0, 1'000'000'000),
            .meaning =
                "The slowest download of a response, in bytes per second; slower clients are "
                "disconnected. 0: any rate above zero.",
            .fallback = "200",
            .formerly = {"written_rate"}},
           {.name = "download_rate_interval",
            .shape = text(kTimeFormat),
            .meaning = "How often `min_download_rate` is checked.",
            .fallback = "30s",
            .formerly = {"written_within"}},
           {.name = "keepalive_requests",
            .shape = number(1, 1'000'000'000),
            .meaning = "A client connection is closed after so many requests.",
            .fallback = "10000",
            .formerly = {"requests_per_connection"}},
           {.name = "max_connections_per_worker",
            .shape = number(1, 1'000'000),
            .meaning = "The most client connections of each worker. By default 50000, or fewer "
                       "where the process may not have file descriptors for so many.",
            .formerly = {"connections"}},
           {.name = "max_connections_per_ip",
            .shape = number(1, 1'000'000),
            .meaning = "The most client connections of one address, or of one /64 of IPv6, to all "
                       "workers together. By default any number.",
            .formerly = {"connections_per_address"}},
           {.name = "ratelimit_headers",
            .shape = word({"none"}) | families() | map_of(rate_headers_section),
            .meaning = "Which headers tell clients their limits and what is left; see "
                       "[headers.md](headers.md).",
            .fallback = "[ietf-11]",
            .examples = {"[ietf-11, x-rate-limit-epoch]"},
            .hints = former_families(),
            .formerly = {"headers"}},
           {.name = "forwarded_headers",
            .shape = word({"x_forwarded", "forwarded", "both", "none"}),
            .meaning = "Which headers name the client to servers: `X-Forwarded-For`, `-Proto`, "
                       "`-Host` and `-Port`, `Forwarded` (RFC 7239), both, or none. Values that "
                       "clients send are removed, unless they are trusted proxies.",
            .fallback = "x_forwarded",
            .formerly = {"forwarded"}},
           {.name = "tracing", .shape = map_of(tracing_section), .meaning = "W3C Trace Context."},
           {.name = "trust_request_ids",
            .shape = flag(),
            .meaning = "Whether an `X-Request-Id` of the client is forwarded.",
            .fallback = "false"},
           {.name = "via",
            .shape = flag(),
            .meaning =
                "Whether `Via` is added to requests and responses. Some servers do not "
                "compress for proxies (nginx without `gzip_proxied`). Without it, forwarding "
                "loops are not detected.",
            .fallback = "true"}},
      .hints = {{"timeout",
                 "write header_timeout or keepalive_timeout; timeouts for servers are keys of the "
                 "upstream"}}};
  return kSection;
}

Key listen_key() {
  return {.name = "gateway",
          .shape = text(kEndpointFormat) | map_of(listener_section) |
                   list_of(text(kEndpointFormat) | map_of(listener_section)),
          .meaning = "The reverse proxy: HTTP/1.1, with TLS if `gateway.tls` is given.",
          .examples = {"127.0.0.1:8080", "[':8080', 'unix:/run/sluice.sock']",
                       "{address: ':8443', proxy_protocol: true}"}};
}

std::vector<Key> file_keys() {
  return {{.name = "upstreams",
           .shape = map_of(upstreams_section),
           .meaning = "Groups of servers that requests are forwarded to."},
          {.name = "routes",
           .shape = list_of(map_of(route_section)),
           .meaning = "Which requests go where."},
          {.name = "gateway",
           .shape = map_of(gateway_section),
           .meaning = "How the gateway treats connections and requests."}};
}

}  // namespace sluice::gateway
