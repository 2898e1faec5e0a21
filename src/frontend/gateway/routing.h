// Options with their routes and upstreams, as one worker uses them.
//
// Requests under way keep what they began with; the last one lets it go. Upstreams that are the
// same in the next options go on there, with their idle connections and what is known of their
// servers. One thread.
#pragma once

#include "frontend/gateway/gateway_options.h"
#include "frontend/gateway/router.h"
#include "frontend/gateway/upstream.h"

#include <memory>
#include <vector>

namespace sluice::gateway {

struct Routing {
  // `before`: whom this one replaces; null: nobody.
  Routing(net::EventLoop& loop, net::Resolver& resolver, std::shared_ptr<const GatewayOptions> all,
          const Routing* before);

  // Closes an idle connection to any server, so that its descriptor serves another; false if there
  // is none.
  [[nodiscard]] bool close_an_idle_connection() noexcept;

  std::shared_ptr<const GatewayOptions> options;
  Router router;
  std::vector<std::shared_ptr<UpstreamGroup>> groups;
};

}  // namespace sluice::gateway
