// Sockets that wait for connections of the gateway: opened here, or by whoever started the process.
//
// Of an address each worker has a socket of its own, and the system deals connections out. One that
// was inherited, and the file of a Unix socket, are there once: workers share it.
#pragma once

#include "app/config/serve_configuration.h"
#include "frontend/gateway/gateway.h"
#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/inherited.h"
#include "net/listen.h"
#include <sluice/diagnostic.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::app {

struct OpenListener {
  net::Listener listener;
  gateway::Entrance entrance;
};

struct OpenListeners {
  std::vector<std::vector<OpenListener>> of_worker;
  std::vector<std::string> endpoints;        // with the ports that were free
  std::vector<net::InheritedListener> left;  // that serve none of them
};

// Inherited sockets serve the endpoints that they are bound to. Those that match none and are named
// `gateway` (FileDescriptorName= of the socket unit) are listened on besides.
[[nodiscard]] Parsed<OpenListeners> open_listeners(std::span<const GatewayListener> wanted,
                                                   std::vector<net::InheritedListener> inherited,
                                                   unsigned workers);

// The first of them that is bound to this endpoint.
[[nodiscard]] std::optional<net::Listener> take_matching(
    std::vector<net::InheritedListener>& inherited, const net::Endpoint& wanted);

// "'web' on 127.0.0.1:8080"
[[nodiscard]] std::string described(const net::InheritedListener& inherited);

// Where a worker lets connections in. Not movable: the loop knows it. One thread.
class ListenerAcceptor {
 public:
  ListenerAcceptor(OpenListener open, gateway::Gateway& gateway)
      : open_(std::move(open)),
        gateway_(gateway),
        acceptor_(net::Callback<net::Accepted>::to<&ListenerAcceptor::on_accepted>(*this),
                  net::Callback<bool&>::to<&ListenerAcceptor::on_lack>(*this)) {}

  [[nodiscard]] Result<void> watch(net::EventLoop& loop) {
    return acceptor_.start(loop, open_.listener.descriptor());
  }
  [[nodiscard]] const net::AcceptCounts& counts() const noexcept { return acceptor_.counts(); }
  // No more come in. Those that wait at a socket of our own are let in first, since they would be
  // lost with it; at an inherited one they wait for whoever has it next.
  void shut() { open_.listener.is_inherited() ? acceptor_.stop() : acceptor_.finish(); }

 private:
  void on_accepted(net::Accepted accepted) { gateway_.accept(std::move(accepted), open_.entrance); }
  void on_lack(bool& freed) { freed = gateway_.evict_idle(); }

  OpenListener open_;
  gateway::Gateway& gateway_;
  net::Acceptor acceptor_;
};

}  // namespace sluice::app
