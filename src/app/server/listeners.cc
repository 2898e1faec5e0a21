#include "app/server/listeners.h"

#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

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

// The first socket of a shared port. Another process could share it, too; so the port has to be
// free for a socket that does not share.
Parsed<Listener> listen_first(Endpoint endpoint) {
  {
    auto alone = net::listen_on(endpoint);
    if (!alone) return alone;
    endpoint = alone->endpoint();
  }
  return net::listen_on(endpoint, {.reuse_port = true});
}

// The first socket, and one for each other thread.
Parsed<std::vector<Listener>> share(Listener first, unsigned threads) {
  std::vector<Listener> all;
  all.push_back(std::move(first));
  while (all.size() < threads) {
    Parsed<Listener> another = all.front().share();
    if (!another) return tl::unexpected(std::move(another.error()));
    all.push_back(*std::move(another));
  }
  return all;
}

Parsed<std::vector<Listener>> listen_for_all(const Endpoint& endpoint, unsigned threads) {
  if (endpoint.kind == Endpoint::Kind::unix_path || threads == 1) {
    Parsed<Listener> only = net::listen_on(endpoint);
    if (!only) return tl::unexpected(std::move(only.error()));
    return share(*std::move(only), threads);
  }
  Parsed<Listener> first = listen_first(endpoint);
  if (!first) return tl::unexpected(std::move(first.error()));
  const Endpoint bound = first->endpoint();
  std::vector<Listener> all;
  all.push_back(*std::move(first));
  while (all.size() < threads) {
    Parsed<Listener> another = net::listen_on(bound, {.reuse_port = true});
    if (!another) return tl::unexpected(std::move(another.error()));
    all.push_back(*std::move(another));
  }
  return all;
}

// Distributes one address's sockets to the threads.
void deal(std::vector<Listener> sockets, std::size_t number, std::string text,
          OpenListeners& open) {
  const Endpoint endpoint = sockets.front().endpoint();
  const std::uint16_t port =
      endpoint.kind == Endpoint::Kind::unix_path ? std::uint16_t{0} : endpoint.port;
  open.sockets.push_back({.endpoint = endpoint, .text = std::move(text)});
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    open.of_thread[i].push_back(
        {.listener = std::move(sockets[i]), .entrance = {.port = port, .listener = number}});
  }
}

// The first socket bound to this endpoint.
std::optional<Listener> take_matching(std::vector<InheritedListener>& inherited,
                                      const Endpoint& wanted) {
  const auto found = std::ranges::find_if(
      inherited, [&](const auto& one) { return serves(one.listener.endpoint(), wanted); });
  if (found == inherited.end()) return std::nullopt;
  Listener listener = std::move(found->listener);
  // Listeners cannot be assigned, so erasing one from the middle means rebuilding the rest.
  std::vector<InheritedListener> rest;
  for (auto one = inherited.begin(); one != inherited.end(); ++one) {
    if (one != found) rest.push_back(std::move(*one));
  }
  inherited.swap(rest);
  return listener;
}

}  // namespace

std::string described(const InheritedListener& inherited) {
  return quoted(inherited.name) + " on " + inherited.listener.endpoint().text();
}

Parsed<OpenListeners> open_listeners(std::string_view name, std::span<const Endpoint> wanted,
                                     std::vector<InheritedListener> inherited, unsigned threads) {
  OpenListeners open;
  open.of_thread.resize(threads);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::optional<Listener> match = take_matching(inherited, wanted[i]);
    auto sockets = match ? share(*std::move(match), threads) : listen_for_all(wanted[i], threads);
    if (!sockets) return tl::unexpected(std::move(sockets.error()));
    deal(*std::move(sockets), i, wanted[i].text(), open);
  }
  for (InheritedListener& one : inherited) {
    if (one.name != name) {
      open.left.push_back(std::move(one));
      continue;
    }
    std::string text = described(one);
    auto sockets = share(std::move(one.listener), threads);
    if (!sockets) return tl::unexpected(std::move(sockets.error()));
    deal(*std::move(sockets), frontend::Entrance::kUnlisted, std::move(text), open);
  }
  return open;
}

}  // namespace sluice::app
