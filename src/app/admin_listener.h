// The admin listener: a thread of its own, so that neither a long page delays signals nor a long
// reload delays a probe.
#pragma once

#include "frontend/admin/admin_server.h"
#include "frontend/admin/pages.h"
#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/listen.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sluice::app {

class AdminListener {
 public:
  // Answers from start() on.
  [[nodiscard]] static Parsed<std::unique_ptr<AdminListener>> open(
      std::vector<net::Listener> listeners, std::shared_ptr<const admin::Guard> guard,
      std::unique_ptr<admin::ServerView> view, const Clock& clock);
  AdminListener(const AdminListener&) = delete;
  AdminListener& operator=(const AdminListener&) = delete;
  ~AdminListener();

  void start();
  // From any thread: who may ask, from now on.
  void use(std::shared_ptr<const admin::Guard> guard);

  [[nodiscard]] std::vector<std::string> endpoints() const;  // with the real ports

 private:
  AdminListener(std::unique_ptr<net::EventLoop> loop, std::unique_ptr<admin::ServerView> view);
  [[nodiscard]] Parsed<void> listen(net::Listener listener);

  std::unique_ptr<net::EventLoop> loop_;
  std::unique_ptr<admin::ServerView> view_;
  admin::Routes routes_;
  admin::AdminServer server_;
  std::vector<std::unique_ptr<net::Listener>> listeners_;
  std::vector<std::unique_ptr<net::Acceptor>> acceptors_;
  std::jthread thread_;  // last: it uses all the others
};

}  // namespace sluice::app
