// What may be written about servers behind the gateway, and about the way to them.
#include "app/serve_grammar.h"
#include "rules/formats.h"

namespace sluice::app {

using config::flag;
using config::list_of;
using config::map_of;
using config::number;
using config::Section;
using config::text;
using config::word;

const Section& server_section() {
  static const Section kSection{.name = "server",
                                .meaning = "One server of an upstream.",
                                .keys = {{.name = "address",
                                          .shape = text(kEndpointFormat),
                                          .meaning = "Where it is.",
                                          .required = true,
                                          .examples = {"127.0.0.1:3000"}},
                                         {.name = "weight",
                                          .shape = number(1, 100),
                                          .meaning = "How many requests it gets beside the others.",
                                          .fallback = "1"}}};
  return kSection;
}

const Section& upstream_tls_section() {
  static const Section kSection{
      .name = "upstream_tls",
      .meaning = "TLS to the servers.",
      .keys = {
          {.name = "ca",
           .shape = text(),
           .meaning = "Who vouches for them, as PEM; by default the authorities of the system.",
           .examples = {"internal-ca.pem"}},
          {.name = "verify",
           .shape = flag(),
           .meaning = "Whether their certificates are checked.",
           .fallback = "true"}}};
  return kSection;
}

const Section& upstream_section() {
  static const Section kSection{
      .name = "upstream",
      .meaning = "Servers that requests are passed on to.",
      .keys = {
          {.name = "servers",
           .shape = list_of(text(kEndpointFormat) | map_of(server_section)),
           .meaning = "At least one.",
           .required = true,
           .examples = {"[127.0.0.1:3000, 127.0.0.1:3001]"}},
          {.name = "balance",
           .shape = word({"round_robin", "least_connections", "hash"}),
           .meaning = "Who gets the next request: each in turn, the one with the fewest under way, "
                      "or always the same one for the same client.",
           .fallback = "round_robin"},
          {.name = "keep_alive",
           .shape = number(0, 10'000),
           .meaning = "The most idle connections that each worker keeps to each server. By default "
                      "the pool follows demand: it keeps as many connections as were in use at "
                      "once within `idle_for`, or within a minute if that is less.",
           .examples = {"64"}},
          {.name = "connect",
           .shape = text(kTimeFormat),
           .meaning = "The longest time to connect.",
           .fallback = "3s"},
          {.name = "send_timeout",
           .shape = text(kTimeFormat),
           .meaning = "The longest time in which a server takes nothing of a request that is being "
                      "sent to it; then 504. However slowly, it may take it.",
           .fallback = "30s"},
          {.name = "answer",
           .shape = text(kTimeFormat),
           .meaning = "The longest time from the end of a request, as the server has taken it, to "
                      "the head of its answer.",
           .fallback = "30s"},
          {.name = "silent",
           .shape = text(kTimeFormat),
           .meaning = "The longest time between two parts of an answer.",
           .fallback = "30s"},
          {.name = "total",
           .shape = text(rules::kDurationFormat),
           .meaning = "The longest time for all of it, from passing a request on to the end of its "
                      "answer, other servers that were asked included. 0s: any.",
           .fallback = "0s",
           .examples = {"2m"}},
          {.name = "idle_for",
           .shape = text(kTimeFormat),
           .meaning = "How long an idle connection is kept; less than the servers keep it. To keep "
                      "none, write `keep_alive: 0`.",
           .fallback = "50s"},
          {.name = "retries",
           .shape = number(0, 10),
           .meaning = "How often another server, or another address of the same name, is asked, "
                      "where nothing can happen twice.",
           .fallback = "1"},
          {.name = "failures",
           .shape = number(1, 1000),
           .meaning = "After so many failures in a row a server, or one of the addresses of its "
                      "name, is left alone for a while.",
           .fallback = "3"},
          {.name = "left_alone",
           .shape = text(rules::kDurationFormat),
           .meaning = "For how long; 0s: never.",
           .fallback = "10s"},
          {.name = "host",
           .shape = text(kOneHostFormat),
           .meaning = "Sent as `Host`, and checked in certificates, instead of the client's.",
           .examples = {"internal.example.com"}},
          {.name = "tls",
           .shape = flag() | map_of(upstream_tls_section),
           .meaning = "Whether to speak TLS to the servers.",
           .fallback = "false"}}};
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
                .examples = {"app"}}}};
  return kSection;
}

}  // namespace sluice::app
