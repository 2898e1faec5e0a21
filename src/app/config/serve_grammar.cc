#include "app/config/serve_grammar.h"

#include "app/config/frontends.h"
#include "app/config/serve_configuration.h"
#include "config/formats.h"
#include "frontend/frontend.h"
#include "rules/formats.h"

#include <utility>
#include <vector>

namespace sluice::app {

using config::Key;
using config::map_of;
using config::mistake_of;
using config::number;
using config::Section;
using config::text;
using config::word;
using frontend::FrontendKind;
using frontend::Placement;

const Section& listen_section() {
  static const Section kSection = [] {
    Section section{.name = "listen",
                    .meaning = "Where to listen. A listener that is not named is off.",
                    .keys = {}};
    for (const FrontendKind* kind : frontends()) section.keys.push_back(kind->listen);
    return section;
  }();
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
               {.name = "max_rejected_per_second",
                .shape = number(1, 1'000'000),
                .meaning = "Each worker logs at most so many rejected requests per second; the "
                           "next line says how many were skipped.",
                .fallback = "100",
                .formerly = {"refusals_per_second"}}}};
  return kSection;
}

const Section& drain_section() {
  static const Section kSection{
      .name = "drain",
      .meaning =
          "How the server stops on SIGTERM: `/readyz` fails at once; after `delay` the server "
          "accepts no more connections and finishes the requests in flight.",
      .keys = {
          {.name = "delay",
           .shape = text(rules::kDurationFormat),
           .meaning = "How long it keeps accepting connections, so that load balancers notice: "
                      "slightly more than their health check interval.",
           .fallback = "0s",
           .examples = {"10s"}},
          {.name = "timeout",
           .shape = text(rules::kDurationFormat),
           .meaning = "How long requests in flight may take after that; 0s closes them at once.",
           .fallback = "30s",
           .formerly = {"within"}}}};
  return kSection;
}

namespace {

void add_frontends(Placement placement, std::vector<Key>& keys) {
  for (const FrontendKind* kind : frontends()) {
    if (kind->placement != placement) continue;
    keys.insert(keys.end(), kind->keys.begin(), kind->keys.end());
  }
}

}  // namespace

// Keys for requests stand before the access log, keys for operators behind it.
std::vector<Key> serve_keys() {
  std::vector<Key> keys{{.name = "listen",
                         .shape = map_of(listen_section),
                         .meaning = "Where to listen.",
                         .examples = {"{gateway: ':8080', admin: '127.0.0.1:9090'}"}},
                        {.name = "workers",
                         .shape = number(0, 1024),
                         .meaning = "Threads that serve; 0 is one for each processor.",
                         .fallback = "0"}};
  add_frontends(Placement::workers, keys);
  keys.push_back(
      {.name = "access_log",
       .shape = map_of(access_log_section),
       .meaning = "The access log: one line for each request. Without it, nothing is logged."});
  add_frontends(Placement::own_thread, keys);
  keys.push_back(
      {.name = "drain", .shape = map_of(drain_section), .meaning = "How the server stops."});
  return keys;
}

}  // namespace sluice::app
