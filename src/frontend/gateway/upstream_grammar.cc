// The grammar of upstreams and of the connections to them.
#include "config/formats.h"
#include "frontend/frontend.h"
#include "frontend/gateway/gateway_grammar.h"
#include "rules/formats.h"

namespace sluice::gateway {

using config::flag;
using config::kTimeFormat;
using config::list_of;
using config::map_of;
using config::number;
using config::Section;
using config::text;
using config::word;
using frontend::kEndpointFormat;

const Section& server_section() {
  static const Section kSection{
      .name = "server",
      .meaning = "One server of an upstream.",
      .keys = {{.name = "address",
                .shape = text(kEndpointFormat),
                .meaning = "Where it is.",
                .required = true,
                .examples = {"127.0.0.1:3000"}},
               {.name = "weight",
                .shape = number(1, 100),
                .meaning = "Its share of the requests, relative to the other servers.",
                .fallback = "1"}}};
  return kSection;
}

const Section& upstream_tls_section() {
  static const Section kSection{
      .name = "upstream_tls",
      .meaning = "TLS to the servers.",
      .keys = {
          {.name = "ca_file",
           .shape = text(),
           .meaning = "CAs of the servers' certificates, as PEM; by default those of the system.",
           .examples = {"internal-ca.pem"},
           .formerly = {"ca"}},
          {.name = "server_name",
           .shape = text(kOneHostFormat),
           .meaning = "The name for SNI and for the verification of certificates. By default "
                      "`host_header` if it is given, else the name or address of the server.",
           .examples = {"internal.example.com"}},
          {.name = "verify",
           .shape = flag(),
           .meaning = "Whether the servers' certificates are verified.",
           .fallback = "true"}}};
  return kSection;
}

const Section& upstream_section() {
  static const Section kSection{
      .name = "upstream",
      .meaning = "Servers that requests are forwarded to.",
      .keys =
          {{.name = "servers",
            .shape = list_of(text(kEndpointFormat) | map_of(server_section)),
            .meaning = "At least one.",
            .required = true,
            .examples = {"[127.0.0.1:3000, 127.0.0.1:3001]"}},
           {.name = "balance",
            .shape = word({"round_robin", "least_connections", "client_hash"}),
            .meaning = "Which server gets the next request: each in turn, the one with the fewest "
                       "requests in flight, or always the same one for the same client.",
            .fallback = "round_robin",
            .hints = {{"hash", "write client_hash"}}},
           {.name = "keepalive_connections",
            .shape = number(0, 10'000),
            .meaning =
                "The most idle connections that each worker keeps to each server. By default "
                "the pool follows demand: it keeps as many connections as were in use at "
                "once within `keepalive_timeout`, or within a minute if that is less.",
            .examples = {"64"},
            .formerly = {"keep_alive"}},
           {.name = "connect_timeout",
            .shape = text(kTimeFormat),
            .meaning = "The longest time to connect.",
            .fallback = "3s",
            .formerly = {"connect"}},
           {.name = "send_timeout",
            .shape = text(kTimeFormat),
            .meaning = "The longest time in which a server accepts no byte of a request; then 504.",
            .fallback = "30s"},
           {.name = "response_timeout",
            .shape = text(kTimeFormat),
            .meaning =
                "The longest time from the last byte of a request to the headers of its response.",
            .fallback = "30s",
            .formerly = {"answer"}},
           {.name = "read_timeout",
            .shape = text(kTimeFormat),
            .meaning = "The longest time between two parts of a response.",
            .fallback = "30s",
            .formerly = {"silent"}},
           {.name = "request_timeout",
            .shape = text(rules::kDurationFormat),
            .meaning =
                "The longest time from sending a request to the end of its response, retries "
                "included. 0s: no limit.",
            .fallback = "0s",
            .examples = {"2m"},
            .formerly = {"total"}},
           {.name = "keepalive_timeout",
            .shape = text(kTimeFormat),
            .meaning =
                "How long an idle connection is kept; set it below the keep-alive timeout of "
                "the servers. To keep none, write `keepalive_connections: 0`.",
            .fallback = "50s",
            .formerly = {"idle_for"}},
           {.name = "retries",
            .shape = number(0, 10),
            .meaning =
                "How often a failed request is sent to another server, or to another address "
                "of the same name, if repeating it is safe.",
            .fallback = "1"},
           {.name = "max_consecutive_failures",
            .shape = number(1, 1000),
            .meaning =
                "After so many consecutive failures a server, or one of the addresses of its "
                "name, is ejected for `ejection_time`.",
            .fallback = "3",
            .formerly = {"failures"}},
           {.name = "ejection_time",
            .shape = text(rules::kDurationFormat),
            .meaning = "How long an ejected server gets no requests; 0s: none is ejected.",
            .fallback = "10s",
            .formerly = {"left_alone"}},
           {.name = "host_header",
            .shape = text(kOneHostFormat),
            .meaning = "Sent as `Host` instead of the client's. Certificates are verified against "
                       "it unless `tls.server_name` is given.",
            .examples = {"internal.example.com"},
            .formerly = {"host"}},
           {.name = "tls",
            .shape = flag() | map_of(upstream_tls_section),
            .meaning = "Whether to speak TLS to the servers.",
            .fallback = "false"}},
      .hints = {
          {"timeout", "write connect_timeout, response_timeout, read_timeout or request_timeout"},
          {"proxy_pass", "write servers: [127.0.0.1:3000]"}}};
  return kSection;
}

const Section& upstreams_section() {
  static const Section kSection{.name = "upstreams",
                                .meaning = "Groups of servers, by name.",
                                .keys = {},
                                .others = config::OtherKeys{.what = "NAME",
                                                            .format = &rules::kNameFormat,
                                                            .shape = map_of(upstream_section),
                                                            .meaning = "One group."}};
  return kSection;
}

const Section& route_section() {
  static const Section kSection{
      .name = "route",
      .meaning = "Which requests go where. The most specific route wins.",
      .keys = {{.name = "host",
                .shape = text(rules::kHostFormat) | list_of(text(rules::kHostFormat)),
                .meaning = "The host; `*.example.com` for all below it. By default any.",
                .examples = {"api.example.com"}},
               {.name = "path",
                .shape = text(rules::kPathFormat),
                .meaning = "A template, as in rules. By default any.",
                .examples = {"/v1/**"}},
               {.name = "upstream",
                .shape = text(rules::kNameFormat),
                .meaning = "The name of the group.",
                .required = true,
                .examples = {"app"}}},
      .hints = {
          {"location", "write path: /x/**"},
          {"proxy_pass", "write upstream: app, and its servers under 'upstreams'"},
          {"timeout", "write response_timeout or request_timeout in the upstream"},
          {"limit", "write a rule: rules: [{name: api, match: {path: /x/**}, limit: 10/1s}]"}}};
  return kSection;
}

}  // namespace sluice::gateway
