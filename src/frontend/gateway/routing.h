// Options with their routes and upstreams, as one worker uses them.
//
// Requests under way keep what they began with; the last one lets it go. One thread.
#pragma once

#include "frontend/gateway/gateway_options.h"
#include "frontend/gateway/router.h"
#include "frontend/gateway/upstream.h"

#include <memory>
#include <utility>
#include <vector>

namespace sluice::gateway {

struct Routing {
  Routing(net::EventLoop& loop, net::Resolver& resolver, std::shared_ptr<const GatewayOptions> all)
      : options(std::move(all)), router(options->routes) {
    for (const UpstreamOptions& upstream : options->upstreams) {
      groups.push_back(std::make_unique<UpstreamGroup>(loop, resolver, upstream));
    }
  }

  std::shared_ptr<const GatewayOptions> options;
  Router router;
  std::vector<std::unique_ptr<UpstreamGroup>> groups;
};

}  // namespace sluice::gateway
