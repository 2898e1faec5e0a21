#include "frontend/admin/pages.h"

#include "frontend/admin/status_json.h"
#include "metrics/exposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::admin {
namespace {

using frontend::Check;
using frontend::ServerView;

// Whether this process responds, and no more: it checks neither stores nor upstreams, since a
// restart would mend none of them.
Reply livez(const Request& /*request*/) { return plain("ok\n"); }

Reply readyz(const ServerView& view, const Request& request) {
  const std::vector<Check> checks = view.readiness();
  const bool is_ready = std::ranges::all_of(checks, &Check::holds);
  std::string text;
  for (const Check& check : checks) {
    if (request.asks_for("verbose")) {
      text += fmt::format("[{}] {}\n", check.holds ? '+' : '-', check.name);
    }
  }
  Reply reply = plain(text + (is_ready ? "ok\n" : "not ready\n"));
  reply.status = is_ready ? 200 : 503;
  return reply;
}

Reply metrics_page(ServerView& view, const Request& request) {
  const metrics::Exposition form =
      metrics::choose_exposition(request.header("accept").value_or(""));
  return {.status = 200,
          .headers = {{"content-type", std::string{metrics::content_type(form)}}},
          .body = view.metrics(form)};
}

}  // namespace

void add_pages(Routes& routes, ServerView& view) {
  const auto ready = [&view](const Request& request) { return readyz(view, request); };
  routes.add("GET", "/", Access::guarded, "this list",
             [&routes](const Request&) { return plain(routes.listing()); });
  routes.add("GET", "/livez", Access::open, "whether the process is alive", livez);
  routes.add("GET", "/readyz", Access::open,
             "whether requests should be sent here; ?verbose says why", ready);
  routes.add("GET", "/healthz", Access::open, "the same as /readyz", ready);
  routes.add("GET", "/metrics", Access::guarded, "counters for Prometheus, as text or OpenMetrics",
             [&view](const Request& request) { return metrics_page(view, request); });
  routes.add("GET", "/v1/status", Access::guarded, "the server at this moment, as JSON",
             [&view](const Request&) { return json(status_json(view.status())); });
}

}  // namespace sluice::admin
