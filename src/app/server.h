// The server: listeners, workers, signals.
//
// One thread waits for signals and does all that may take long; the workers have theirs, and so
// have the admin listener and a file of rules. SIGHUP, or a change of the file or of one that it
// names, reads all of them anew; what is wrong is reported and changes nothing. SIGUSR1 opens the
// access log anew. SIGTERM and SIGINT drain: not ready at once, after a delay no new connections,
// answers with Connection: close, then the end; a second one ends at once. The admin listener
// answers until then.
#pragma once

#include "app/configuration.h"
#include "app/ejection_log.h"
#include "app/log_line.h"
#include "app/reload.h"
#include "app/request_observer.h"
#include "app/running.h"
#include "app/serve_configuration.h"
#include "config/diagnostics.h"
#include "net/event_loop.h"
#include "net/inherited.h"
#include "net/resolver.h"
#include "net/service_manager.h"
#include "net/signals.h"
#include <sluice/clock.h>

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace sluice::app {

struct ServerOptions {
  std::string file;
  std::string text;  // of the file; what was changed since is taken over at once
  std::string version;
  std::string revision;
  Say say;  // from one thread
};

class Server {
 public:
  // Opens everything. Null, with what is wrong reported, if anything is. The clock outlives it.
  [[nodiscard]] static std::unique_ptr<Server> open(const ServerOptions& options,
                                                    const Clock& clock,
                                                    config::Diagnostics& diagnostics);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Serves until it is told to stop.
  void run();

  [[nodiscard]] const std::vector<admin::ListenerStatus>& listeners() const noexcept {
    return running_.facts->listeners;
  }
  [[nodiscard]] std::size_t workers() const noexcept { return running_.workers.size(); }
  [[nodiscard]] std::size_t rules() const { return running_.facts->configuration().rules; }

 private:
  Server(ServerOptions options, const Clock& clock);
  [[nodiscard]] bool open_all(config::Diagnostics& diagnostics);
  [[nodiscard]] bool open_loop(config::Diagnostics& diagnostics);
  void open_metrics(unsigned workers);
  [[nodiscard]] bool open_rules(const Configuration& configuration,
                                config::Diagnostics& diagnostics);
  [[nodiscard]] bool open_workers(const ServeConfig& serve, unsigned count,
                                  std::vector<net::InheritedListener>& inherited,
                                  config::Diagnostics& diagnostics);
  [[nodiscard]] RequestObserver::Operator who_hears();
  [[nodiscard]] bool open_admin(const ServeConfig& serve,
                                std::vector<net::InheritedListener>& inherited,
                                config::Diagnostics& diagnostics);
  void on_signal(int number);
  void reopen_log();
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
  Running running_;
  std::unique_ptr<Reload> reload_;  // behind what it changes
  net::Timer drain_soon_;
  net::Timer drained_;
  net::Timer watchdog_;
  std::set<std::string> warned_;  // of these
  EjectionLog ejections_;
  MonoTime drain_until_;
};

}  // namespace sluice::app
