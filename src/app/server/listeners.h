// Listening sockets of a front end: opened here, or by the service manager.
//
// Each thread has a socket of its own for every address, and the kernel distributes connections.
// Inherited sockets and Unix sockets exist only once: threads share them.
#pragma once

#include "frontend/frontend.h"
#include "net/acceptor.h"
#include "net/endpoint.h"
#include "net/event_loop.h"
#include "net/inherited.h"
#include "net/listen.h"
#include <sluice/diagnostic.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::app {

struct OpenListener {
  net::Listener listener;
  frontend::Entrance entrance;
};

struct OpenListeners {
  std::vector<std::vector<OpenListener>> of_thread;
  std::vector<frontend::OpenedSocket> sockets;  // one for each address, with the real port
  std::vector<net::InheritedListener> left;     // not used by any endpoint
};

// Inherited sockets serve the endpoints that they are bound to. Sockets without one but with the
// front end's name (FileDescriptorName= of the socket unit) are additional listeners.
[[nodiscard]] Parsed<OpenListeners> open_listeners(std::string_view name,
                                                   std::span<const net::Endpoint> wanted,
                                                   std::vector<net::InheritedListener> inherited,
                                                   unsigned threads);

// "'web' on 127.0.0.1:8080"
[[nodiscard]] std::string described(const net::InheritedListener& inherited);

// Accepts connections for a front end. Not movable: the loop points to it. One thread.
class ListenerAcceptor {
 public:
  ListenerAcceptor(OpenListener open, frontend::FrontendWorker& worker)
      : open_(std::move(open)),
        worker_(worker),
        acceptor_(net::Callback<net::Accepted>::to<&ListenerAcceptor::on_accepted>(*this),
                  net::Callback<bool&>::to<&ListenerAcceptor::on_lack>(*this)) {}

  [[nodiscard]] Result<void> watch(net::EventLoop& loop) {
    return acceptor_.start(loop, open_.listener.descriptor());
  }
  [[nodiscard]] const net::AcceptCounts& counts() const noexcept { return acceptor_.counts(); }
  // Stops accepting. Connections pending at a socket of our own are accepted first, since they
  // would be lost with it; at an inherited socket they wait for its next owner.
  void shut() { open_.listener.is_inherited() ? acceptor_.stop() : acceptor_.finish(); }

 private:
  void on_accepted(net::Accepted accepted) { worker_.accept(std::move(accepted), open_.entrance); }
  void on_lack(bool& freed) { freed = worker_.evict_idle(); }

  OpenListener open_;
  frontend::FrontendWorker& worker_;
  net::Acceptor acceptor_;
};

}  // namespace sluice::app
