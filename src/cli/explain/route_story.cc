#include "cli/explain/route_story.h"

#include "base/text.h"
#include "frontend/gateway/gateway_config.h"
#include "frontend/gateway/router.h"

#include <fmt/format.h>

#include <optional>

namespace sluice::cli {
namespace {

std::string json_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& one : texts) list += (list.empty() ? "" : ",") + json_string(one);
  return "[" + list + "]";
}

}  // namespace

RouteStory route_of(const app::ServeConfig& serve, std::string_view host, std::string_view path,
                    std::string_view decoded_path) {
  RouteStory story;
  const gateway::GatewayOptions& options = *gateway::config_in(serve.frontends).options;
  story.has_gateway = !options.routes.empty();
  // The router answers with the number of an upstream; here each route has one of its own.
  std::vector<gateway::RouteOptions> numbered = options.routes;
  for (std::size_t i = 0; i < numbered.size(); ++i) numbered[i].upstream = i;
  const gateway::Router router{numbered};
  const auto number = router.find(host, path);
  const auto upstream_of = [&](const std::optional<std::size_t>& route) {
    return route ? std::optional{options.routes[*route].upstream} : std::nullopt;
  };
  story.is_ambiguous =
      !decoded_path.empty() && upstream_of(number) != upstream_of(router.find(host, decoded_path));
  if (!number || story.is_ambiguous) return story;
  const gateway::RouteOptions& route = options.routes[*number];
  const gateway::UpstreamOptions& upstream = options.upstreams[route.upstream];
  story.found = true;
  story.hosts = route.hosts;
  if (route.path) story.path = std::string{route.path->text()};
  story.upstream = upstream.name;
  for (const gateway::ServerOptions& server : upstream.servers) {
    story.servers.push_back(server.endpoint.text());
  }
  return story;
}

std::string route_text(const RouteStory& story) {
  if (story.is_ambiguous) {
    return "none: with and without the escaped slash the path has different routes";
  }
  if (!story.found) return "none: what passes the rules is answered 404";
  const std::string hosts =
      story.hosts.empty() ? "" : fmt::format("{} ", fmt::join(story.hosts, " or "));
  return fmt::format("{}{}, to upstream {} ({})", hosts, story.path.value_or("any path"),
                     story.upstream, fmt::join(story.servers, ", "));
}

std::string route_members(const RouteStory& story) {
  if (!story.found) return R"("route":null,"upstream":null)";
  return fmt::format(R"("route":{{"hosts":{},"path":{}}},"upstream":{{"name":{},"servers":{}}})",
                     json_list(story.hosts), story.path ? json_string(*story.path) : "null",
                     json_string(story.upstream), json_list(story.servers));
}

}  // namespace sluice::cli
