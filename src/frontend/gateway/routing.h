// Options with their routes and upstreams, as one worker uses them.
//
// Requests in flight keep the Routing that they began with; the last of them frees it. Upstreams
// that are the same in the next options move there, with their idle connections and the state of
// their servers. One thread.
#pragma once

#include "frontend/gateway/gateway_options.h"
#include "frontend/gateway/router.h"
#include "frontend/gateway/upstream.h"

#include <memory>
#include <vector>

namespace sluice::gateway {

struct Routing {
  // `before`: the Routing that this replaces; null: none.
  Routing(net::EventLoop& loop, net::Resolver& resolver, std::shared_ptr<const GatewayOptions> all,
          const Routing* before);

  // Closes an idle connection to any server to free its descriptor; false if there is none.
  [[nodiscard]] bool close_an_idle_connection() noexcept;

  std::shared_ptr<const GatewayOptions> options;
  Router router;
  std::vector<std::shared_ptr<UpstreamGroup>> groups;
};

}  // namespace sluice::gateway
