// A front end on its own thread. It serves until the server stops, so that operators can watch it
// drain.
#pragma once

#include "app/server/listeners.h"
#include "app/server/snapshot.h"
#include "base/published.h"
#include "frontend/frontend.h"
#include "net/event_loop.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace sluice::app {

class FrontendThread {
 public:
  // All of them outlive it.
  struct Parts {
    frontend::Frontend& frontend;
    std::size_t number;  // in the snapshot
    const Published<ServerSnapshot>& published;
    frontend::ServerView& view;
    const Clock& clock;
  };
  // Serves from start() on.
  [[nodiscard]] static Parsed<std::unique_ptr<FrontendThread>> open(
      const Parts& parts, std::vector<OpenListener> listeners);
  FrontendThread(const FrontendThread&) = delete;
  FrontendThread& operator=(const FrontendThread&) = delete;
  ~FrontendThread();

  void start();
  // From any thread: runs a turn, which takes the newest snapshot.
  void wake();

 private:
  FrontendThread(std::unique_ptr<net::EventLoop> loop, const Parts& parts);
  void on_turn(Now now);

  std::unique_ptr<net::EventLoop> loop_;
  const std::size_t number_;
  const Published<ServerSnapshot>& published_;
  std::uint64_t version_;  // of the snapshot in use
  std::unique_ptr<frontend::FrontendWorker> worker_;
  std::vector<std::unique_ptr<ListenerAcceptor>> acceptors_;
  std::jthread thread_;  // last: it uses all the others
};

}  // namespace sluice::app
