// Takes over what has changed while a server runs: the configuration file, files that it names,
// and the rules of the feed.
//
// All of it is looked at before anything is changed: what is wrong is reported, and all stays as it
// was. The files are watched from before they are first read, so no change is missed.
//
// One thread, that of the loop, but for take_rules().
#pragma once

#include "app/configuration.h"
#include "app/log_line.h"
#include "app/request_observer.h"
#include "app/running.h"
#include "app/serve_configuration.h"
#include "config/diagnostics.h"
#include "frontend/admin/guard.h"
#include "net/event_loop.h"
#include "net/service_manager.h"
#include "net/ticket_keys.h"
#include "net/tls_server.h"
#include "rules/source/file_watch.h"
#include "rules/source/rule_source.h"
#include "rules/source/watched_paths.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::app {

class Reload {
 public:
  // All but the texts outlive it.
  struct Parts {
    std::string file;  // the configuration
    std::string text;  // of it, as the server was opened with
    Say say;
    const Clock& clock;
    net::EventLoop& loop;
    net::ServiceManager& manager;
    Running& running;
  };

  // Begins to watch the file, and what a first look at it has found.
  Reload(Parts parts, const Configuration& found);
  Reload(const Reload&) = delete;
  Reload& operator=(const Reload&) = delete;
  ~Reload() = default;

  // ---- while the server is opened ---------------------------------------------------------------

  // Whoever changes what is in force holds it: the server while it opens its parts, this, or the
  // thread of the feed.
  [[nodiscard]] std::unique_lock<std::mutex> turn() { return std::unique_lock{turn_}; }
  // The file as it was found, with the rules of the feed; the turn is held.
  [[nodiscard]] Configuration with_rules(config::Diagnostics& diagnostics) const;
  // The parts are there, made by this; the turn is held.
  void opened_with(Configuration configuration);

  // ---- afterwards -------------------------------------------------------------------------------

  // If the file is another one since it was read.
  void run_if_changed();
  void run();
  // Rules alone, by the thread of the feed; at the start by ours.
  [[nodiscard]] Parsed<void> take_rules(const rules::Fetched& fetched);
  // The same over all reloads, so that clients can resume their sessions.
  [[nodiscard]] std::shared_ptr<const net::TicketKeys> ticket_keys() const noexcept {
    return tickets_.keys();
  }
  // Nothing is watched any more.
  void stop() { watch_ = nullptr; }

  // In force.
  [[nodiscard]] const AccessLogConfig& access_log() const noexcept { return log_; }
  [[nodiscard]] const DrainConfig& drain() const noexcept { return drain_; }

 private:
  // What listeners and logs need of the files that the configuration names.
  struct Named {
    std::shared_ptr<const net::TlsServer> tls;
    std::shared_ptr<const admin::Guard> guard;
    std::optional<AccessLogSink> log;  // if it goes elsewhere
  };

  void watch(rules::WatchedPaths paths);
  void say_later(LogLevel level, std::string line);
  [[nodiscard]] bool take_over(config::Diagnostics& diagnostics);
  [[nodiscard]] Named load(const ServeConfig& serve, config::Diagnostics& diagnostics);
  void put_in_force(const ServeConfig& serve, const Named& files);
  [[nodiscard]] bool has_same_admin(const ServeConfig& serve) const;
  [[nodiscard]] std::vector<std::string_view> need_restart(
      const Configuration& configuration) const;

  const Parts parts_;
  Running& running_;
  std::unique_ptr<rules::FileWatch> watch_;
  rules::WatchedPaths watched_;  // by it
  rules::WatchedPaths named_;    // by the configuration in force
  Configuration began_with_;     // for what changes with a restart only
  AccessLogConfig log_;
  DrainConfig drain_;
  net::TicketRotation tickets_;

  std::mutex turn_;   // guards what follows
  std::string text_;  // of the file in force
  RulesText rules_;   // of the feed's
  Configuration in_force_;
};

}  // namespace sluice::app
