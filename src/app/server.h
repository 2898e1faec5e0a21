// The server: listeners, workers, signals.
//
// One thread waits for signals, watches the file and does all that may take long; the workers have
// theirs, and so has the admin listener. SIGHUP, or a change of the file, reads it anew; a file
// that is wrong is reported and changes nothing. SIGUSR1 opens the access log anew. SIGTERM and
// SIGINT drain: not ready at once, after a delay no new connections, answers with Connection:
// close, then the end; a second one ends at once. The admin listener answers until then.
#pragma once

#include "app/admin_listener.h"
#include "app/configuration.h"
#include "app/engine_room.h"
#include "app/request_observer.h"
#include "app/server_facts.h"
#include "app/server_worker.h"
#include "config/diagnostics.h"
#include "frontend/request_meters.h"
#include "metrics/registry.h"
#include "net/endpoint.h"
#include "net/event_loop.h"
#include "net/resolver.h"
#include "net/service_manager.h"
#include "net/signals.h"
#include <sluice/clock.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::app {

struct ServerOptions {
  std::string file;  // empty: not watched, and nothing to reload
  std::string text;  // of the file; what was changed since is taken over at once
  std::string version;
  std::string revision;
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

  [[nodiscard]] const std::vector<admin::ListenerStatus>& listeners() const noexcept {
    return facts_->listeners;
  }
  [[nodiscard]] std::size_t workers() const noexcept { return workers_.size(); }

 private:
  Server(ServerOptions options, const Clock& clock);
  [[nodiscard]] bool open_all(const Configuration& configuration, config::Diagnostics& diagnostics);
  void open_metrics(unsigned workers);
  [[nodiscard]] bool open_workers(const ServeConfig& serve, unsigned count,
                                  config::Diagnostics& diagnostics);
  [[nodiscard]] RequestObserver::Operator who_hears();
  [[nodiscard]] bool open_admin(const ServeConfig& serve, config::Diagnostics& diagnostics);
  void on_signal(int number);
  void reopen_log();
  void reload();
  void reload_if_changed();
  [[nodiscard]] bool take_over(config::Diagnostics& diagnostics);
  void begin_to_drain();
  void drain();
  void look();
  void feed_watchdog();
  void end();

  ServerOptions options_;
  const Clock& clock_;
  net::ServiceManager manager_;
  std::unique_ptr<net::EventLoop> loop_;
  std::unique_ptr<net::SignalSource> signals_;
  std::unique_ptr<net::Resolver> resolver_;
  std::unique_ptr<metrics::Registry> registry_;
  std::unique_ptr<const frontend::RequestMeters> meters_;
  std::unique_ptr<ServerFacts> facts_;
  std::unique_ptr<EngineRoom> room_;
  std::vector<std::unique_ptr<ServerWorker>> workers_;
  std::unique_ptr<AdminListener> admin_;  // null: it is off
  ListenConfig listening_;                // as the file said
  std::string log_file_;                  // the same
  DrainConfig drain_;
  net::Timer drain_soon_;
  net::Timer drained_;
  net::Timer watchdog_;
  std::set<std::string> warned_;  // of these
  MonoTime drain_until_;
};

}  // namespace sluice::app
