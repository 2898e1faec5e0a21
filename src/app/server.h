// The server: listeners, workers, signals.
//
// One thread waits for signals and does all that may take long; the workers have theirs, and so
// have the admin listener and a file of rules. SIGHUP, or a change of the file or of one that it
// names, reads all of them anew; what is wrong is reported and changes nothing. SIGUSR1 opens the
// access log anew. SIGTERM and SIGINT drain: not ready at once, after a delay no new connections,
// answers with Connection: close, then the end; a second one ends at once. The admin listener
// answers until then.
#pragma once

#include "app/admin_listener.h"
#include "app/configuration.h"
#include "app/engine_room.h"
#include "app/request_observer.h"
#include "app/rule_feed.h"
#include "app/server_facts.h"
#include "app/server_worker.h"
#include "config/diagnostics.h"
#include "frontend/request_meters.h"
#include "metrics/registry.h"
#include "net/event_loop.h"
#include "net/inherited.h"
#include "net/resolver.h"
#include "net/service_manager.h"
#include "net/signals.h"
#include "rules/source/file_watch.h"
#include "rules/source/rule_source.h"
#include "rules/source/watched_paths.h"
#include <sluice/clock.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::app {

struct ServerOptions {
  std::string file;
  std::string text;  // of the file; what was changed since is taken over at once
  std::string version;
  std::string revision;
  std::function<void(std::string_view)> say;  // one line for the operator; from one thread
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
    return facts_->listeners;
  }
  [[nodiscard]] std::size_t workers() const noexcept { return workers_.size(); }
  [[nodiscard]] std::size_t rules() const { return facts_->configuration().rules; }

 private:
  Server(ServerOptions options, const Clock& clock);
  [[nodiscard]] bool open_all(config::Diagnostics& diagnostics);
  [[nodiscard]] bool open_loop(config::Diagnostics& diagnostics);
  void open_metrics(unsigned workers);
  [[nodiscard]] bool open_rules(const RulesFileConfig& config, config::Diagnostics& diagnostics);
  [[nodiscard]] bool open_workers(const ServeConfig& serve, unsigned count,
                                  std::vector<net::InheritedListener>& inherited,
                                  config::Diagnostics& diagnostics);
  [[nodiscard]] RequestObserver::Operator who_hears();
  [[nodiscard]] bool open_admin(const ServeConfig& serve,
                                std::vector<net::InheritedListener>& inherited,
                                config::Diagnostics& diagnostics);
  void on_signal(int number);
  void reopen_log();
  void watch(rules::WatchedPaths paths);
  void reload();
  void reload_if_changed();
  [[nodiscard]] bool take_over(config::Diagnostics& diagnostics);
  // What listeners and logs need of the files that the configuration names.
  struct Named {
    std::shared_ptr<const net::TlsServer> tls;
    std::shared_ptr<const admin::Guard> guard;
    std::optional<AccessLogSink> log;  // if it goes elsewhere
  };
  [[nodiscard]] Named load(const ServeConfig& serve, config::Diagnostics& diagnostics) const;
  void put_in_force(const ServeConfig& serve, const Named& files);
  [[nodiscard]] bool has_same_admin(const ServeConfig& serve) const;
  [[nodiscard]] Parsed<void> take_rules(const rules::Fetched& fetched);
  [[nodiscard]] std::vector<std::string_view> need_restart(
      const Configuration& configuration) const;
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
  bool admin_needs_token_ = false;        // somebody from elsewhere can reach it
  std::unique_ptr<RuleFeed> feed_;        // null: rules are in the file itself
  std::unique_ptr<rules::FileWatch> watch_;
  rules::WatchedPaths watched_;  // by it
  rules::WatchedPaths named_;    // by the configuration in force
  Configuration began_with_;     // for what changes with a restart only
  AccessLogConfig log_;
  DrainConfig drain_;
  net::Timer drain_soon_;
  net::Timer drained_;
  net::Timer watchdog_;
  std::set<std::string> warned_;  // of these
  MonoTime drain_until_;

  // Held by whoever changes what is in force: this thread, or that of the feed.
  std::mutex turn_;
  std::string text_;  // of the file in force
  RulesText rules_;   // of the feed's
  Configuration in_force_;
};

}  // namespace sluice::app
