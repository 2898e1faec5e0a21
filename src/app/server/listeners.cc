#include "app/server/listeners.h"

#include "base/text.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace sluice::app {
namespace {

using net::Endpoint;
using net::InheritedListener;
using net::Listener;

bool is_every_address(const IpAddress& address) noexcept {
  return address == IpAddress::v4(0) || address == IpAddress::parse("::");
}

bool serves(const Endpoint& bound, const Endpoint& wanted) noexcept {
  if (bound == wanted) return true;
  return wanted.kind == Endpoint::Kind::any && bound.kind == Endpoint::Kind::address &&
         bound.port == wanted.port && is_every_address(bound.address);
}

// Of several sockets that share a port. They would share it with another process, too; so it has to
// be free for one that does not share.
Parsed<Listener> listen_first(Endpoint endpoint) {
  {
    auto alone = net::listen_on(endpoint);
    if (!alone) return alone;
    endpoint = alone->endpoint();
  }
  return net::listen_on(endpoint, {.reuse_port = true});
}

// The first socket, and one for each other worker.
Parsed<std::vector<Listener>> share(Listener first, unsigned workers) {
  std::vector<Listener> all;
  all.push_back(std::move(first));
  while (all.size() < workers) {
    Parsed<Listener> another = all.front().share();
    if (!another) return tl::unexpected(std::move(another.error()));
    all.push_back(*std::move(another));
  }
  return all;
}

Parsed<std::vector<Listener>> listen_for_all(const Endpoint& endpoint, unsigned workers) {
  if (endpoint.kind == Endpoint::Kind::unix_path || workers == 1) {
    Parsed<Listener> only = net::listen_on(endpoint);
    if (!only) return tl::unexpected(std::move(only.error()));
    return share(*std::move(only), workers);
  }
  Parsed<Listener> first = listen_first(endpoint);
  if (!first) return tl::unexpected(std::move(first.error()));
  const Endpoint bound = first->endpoint();
  std::vector<Listener> all;
  all.push_back(*std::move(first));
  while (all.size() < workers) {
    Parsed<Listener> another = net::listen_on(bound, {.reuse_port = true});
    if (!another) return tl::unexpected(std::move(another.error()));
    all.push_back(*std::move(another));
  }
  return all;
}

// One address's sockets, dealt out to the workers.
void deal(std::vector<Listener> sockets, bool proxy_protocol, OpenListeners& open) {
  const Endpoint endpoint = sockets.front().endpoint();
  const std::uint16_t port =
      endpoint.kind == Endpoint::Kind::unix_path ? std::uint16_t{0} : endpoint.port;
  open.endpoints.push_back(endpoint.text());
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    open.of_worker[i].push_back({.listener = std::move(sockets[i]),
                                 .entrance = {.port = port, .proxy_protocol = proxy_protocol}});
  }
}

}  // namespace

std::optional<Listener> take_matching(std::vector<InheritedListener>& inherited,
                                      const Endpoint& wanted) {
  const auto found = std::ranges::find_if(
      inherited, [&](const auto& one) { return serves(one.listener.endpoint(), wanted); });
  if (found == inherited.end()) return std::nullopt;
  Listener listener = std::move(found->listener);
  // Listeners cannot be assigned, so that erasing one from the middle has to build the rest anew.
  std::vector<InheritedListener> rest;
  for (auto one = inherited.begin(); one != inherited.end(); ++one) {
    if (one != found) rest.push_back(std::move(*one));
  }
  inherited.swap(rest);
  return listener;
}

std::string described(const InheritedListener& inherited) {
  return quoted(inherited.name) + " on " + inherited.listener.endpoint().text();
}

Parsed<OpenListeners> open_listeners(std::span<const GatewayListener> wanted,
                                     std::vector<InheritedListener> inherited, unsigned workers) {
  OpenListeners open;
  open.of_worker.resize(workers);
  for (const GatewayListener& one : wanted) {
    std::optional<Listener> match = take_matching(inherited, one.endpoint);
    auto sockets =
        match ? share(*std::move(match), workers) : listen_for_all(one.endpoint, workers);
    if (!sockets) return tl::unexpected(std::move(sockets.error()));
    deal(*std::move(sockets), one.proxy_protocol, open);
  }
  for (InheritedListener& one : inherited) {
    if (one.name != "gateway") {
      open.left.push_back(std::move(one));
      continue;
    }
    auto sockets = share(std::move(one.listener), workers);
    if (!sockets) return tl::unexpected(std::move(sockets.error()));
    deal(*std::move(sockets), false, open);
  }
  return open;
}

}  // namespace sluice::app
