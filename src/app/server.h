// The server: listeners, workers, signals.
//
// One thread waits for signals, watches the file and does all that may take long; each worker has a
// thread, a loop, its own sockets of every port (the system deals connections out) and its own part
// of the gateway. SIGHUP, or a change of the file, reads it anew; a file that is wrong is reported
// and changes nothing. SIGTERM and SIGINT drain: no new connections, answers with Connection:
// close, then the end; a second one ends at once.
#pragma once

#include "app/configuration.h"
#include "app/engine_room.h"
#include "config/diagnostics.h"
#include "net/event_loop.h"
#include "net/listen.h"
#include "net/resolver.h"
#include "net/service_manager.h"
#include "net/signals.h"
#include <sluice/clock.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::app {

struct ServerOptions {
  std::string file;  // empty: not watched, and nothing to reload
  std::string text;  // of the file; what was changed since is taken over at once
  Nanos drain_within{std::chrono::seconds{30}};
  std::function<void(std::string_view)> say;  // one line for the operator; from one thread
};

class Server {
 public:
  // Opens everything. Null, with what is wrong reported, if anything is. The clock outlives it.
  [[nodiscard]] static std::unique_ptr<Server> open(const Configuration& configuration,
                                                    const ServerOptions& options,
                                                    const Clock& clock,
                                                    config::Diagnostics& diagnostics);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Serves until it is told to stop.
  void run();

  [[nodiscard]] const std::vector<std::string>& endpoints() const noexcept { return endpoints_; }
  [[nodiscard]] std::size_t workers() const noexcept { return workers_.size(); }

 private:
  class Worker;

  Server(const ServerOptions& options, const Clock& clock);
  [[nodiscard]] bool open_all(const Configuration& configuration, config::Diagnostics& diagnostics);
  [[nodiscard]] bool open_workers(const ServeConfig& serve, config::Diagnostics& diagnostics);
  void on_signal(int number);
  void reload();
  void reload_if_changed();
  void drain();
  void look();

  ServerOptions options_;
  const Clock& clock_;
  net::ServiceManager manager_;
  std::unique_ptr<net::EventLoop> loop_;
  std::unique_ptr<net::SignalSource> signals_;
  std::unique_ptr<net::Resolver> resolver_;
  std::unique_ptr<EngineRoom> room_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::string> endpoints_;
  std::vector<GatewayListener> listening_;  // as the file said
  net::Timer drained_;
  MonoTime drain_until_{};
  bool draining_ = false;
};

}  // namespace sluice::app
