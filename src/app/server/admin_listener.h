// The admin listener: a thread of its own, so that neither a long page delays signals nor a long
// reload delays a probe. Its guard is that of the newest snapshot.
#pragma once

#include "app/server/snapshot.h"
#include "base/published.h"
#include "frontend/admin/admin_server.h"
#include "frontend/admin/pages.h"
#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/listen.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sluice::app {

class AdminListener {
 public:
  // Answers from start() on.
  [[nodiscard]] static Parsed<std::unique_ptr<AdminListener>> open(
      std::vector<net::Listener> listeners, const Published<ServerSnapshot>& published,
      std::unique_ptr<admin::ServerView> view, const Clock& clock);
  AdminListener(const AdminListener&) = delete;
  AdminListener& operator=(const AdminListener&) = delete;
  ~AdminListener();

  void start();
  // From any thread: for a turn, in which it takes what was published.
  void wake();

  [[nodiscard]] std::vector<std::string> endpoints() const;  // with the real ports

 private:
  AdminListener(std::unique_ptr<net::EventLoop> loop, const Published<ServerSnapshot>& published,
                std::unique_ptr<admin::ServerView> view);
  void on_turn(Now now);
  [[nodiscard]] Parsed<void> listen(net::Listener listener);

  std::unique_ptr<net::EventLoop> loop_;
  const Published<ServerSnapshot>& published_;
  std::uint64_t version_ = 0;  // of the snapshot whose guard is used
  std::unique_ptr<admin::ServerView> view_;
  admin::Routes routes_;
  admin::AdminServer server_;
  std::vector<std::unique_ptr<net::Listener>> listeners_;
  std::vector<std::unique_ptr<net::Acceptor>> acceptors_;
  std::jthread thread_;  // last: it uses all the others
};

}  // namespace sluice::app
