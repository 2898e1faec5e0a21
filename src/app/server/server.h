// The server: listeners, workers, signals.
//
// The control thread handles signals and makes snapshots (control.h); the workers have threads of
// their own, and so have front ends for operators and a rules file. SIGHUP, or a change of the file
// or of a file that it names, reloads all of them; an invalid file is reported and changes nothing.
// SIGUSR1 reopens the access log. SIGTERM and SIGINT drain: not ready at once, after a delay no new
// connections, responses with Connection: close, then exit; a second signal stops at once. The
// admin listener serves until then.
#pragma once

#include "app/config/serve_configuration.h"
#include "app/server/control.h"
#include "app/server/ejection_log.h"
#include "app/server/frontend_thread.h"
#include "app/server/listeners.h"
#include "app/server/log_line.h"
#include "app/server/overview.h"
#include "app/server/request_observer.h"
#include "app/server/server_facts.h"
#include "app/server/server_worker.h"
#include "config/diagnostics.h"
#include "frontend/frontend.h"
#include "metrics/registry.h"
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
  std::string text;  // of the file; later changes are reloaded at once
  std::string version;
  std::string revision;
  Say say;  // from one thread
};

class Server {
 public:
  // Opens everything. Null, with all mistakes reported, on failure. The clock outlives it.
  [[nodiscard]] static std::unique_ptr<Server> open(const ServerOptions& options,
                                                    const Clock& clock,
                                                    config::Diagnostics& diagnostics);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Serves until a signal stops it.
  void run();

  [[nodiscard]] const std::vector<frontend::ListenerStatus>& listeners() const noexcept {
    return facts_->listeners;
  }
  [[nodiscard]] std::size_t workers() const noexcept { return workers_.size(); }
  [[nodiscard]] std::size_t rules() const { return facts_->configuration().rules; }

 private:
  Server(ServerOptions options, const Clock& clock);
  [[nodiscard]] bool open_all(config::Diagnostics& diagnostics);
  [[nodiscard]] bool open_loop(config::Diagnostics& diagnostics);
  void open_metrics(unsigned workers);
  [[nodiscard]] bool open_sockets(unsigned workers, config::Diagnostics& diagnostics);
  [[nodiscard]] bool open_workers(unsigned count, config::Diagnostics& diagnostics);
  [[nodiscard]] bool open_threads(config::Diagnostics& diagnostics);
  [[nodiscard]] RequestObserver::Operator who_hears();
  void wake_all();
  void on_signal(int number);
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
  std::vector<std::unique_ptr<frontend::Frontend>> frontends_;  // as frontends() lists them
  // Of each front end, until its threads take them.
  std::vector<std::vector<std::vector<OpenListener>>> sockets_;
  // From the innermost out; null until opened.
  std::unique_ptr<metrics::Registry> registry_;
  std::unique_ptr<ServerFacts> facts_;
  std::unique_ptr<Control> control_;
  std::vector<ServedFrontend> served_;  // on workers
  std::vector<std::unique_ptr<ServerWorker>> workers_;
  std::unique_ptr<Overview> overview_;
  std::vector<std::unique_ptr<FrontendThread>> threads_;
  net::Timer drain_soon_;
  net::Timer drained_;
  net::Timer watchdog_;
  std::set<std::string> warned_;  // logged lines
  EjectionLog ejections_;
  MonoTime drain_until_;
};

}  // namespace sluice::app
