#include "frontend/gateway/routing.h"

#include <algorithm>
#include <utility>

namespace sluice::gateway {
namespace {

std::shared_ptr<UpstreamGroup> find_same(const Routing* in, const UpstreamOptions& wanted) {
  if (in == nullptr) return nullptr;
  const auto found =
      std::ranges::find_if(in->groups, [&](const auto& group) { return group->serves(wanted); });
  return found == in->groups.end() ? nullptr : *found;
}

}  // namespace

Routing::Routing(net::EventLoop& loop, net::Resolver& resolver,
                 std::shared_ptr<const GatewayOptions> all, const Routing* before)
    : options(std::move(all)), router(options->routes) {
  for (const UpstreamOptions& upstream : options->upstreams) {
    std::shared_ptr<UpstreamGroup> group = find_same(before, upstream);
    if (group == nullptr) {
      std::shared_ptr<const UpstreamOptions> own{options, &upstream};
      group = std::make_shared<UpstreamGroup>(loop, resolver, std::move(own));
    }
    groups.push_back(std::move(group));
  }
}

bool Routing::close_an_idle_connection() noexcept {
  return std::ranges::any_of(groups, [](const auto& group) {
    return std::ranges::any_of(group->servers(),
                               [](const auto& server) { return server->close_idle(1) > 0; });
  });
}

}  // namespace sluice::gateway
