// The path of a configuration, from files to the threads that serve: read control.cc top to bottom.
//
//   the file, files that it names, the rules' own file    a change is noticed
//     -> read_configuration()                             from text to a checked configuration
//     -> load()                                           files of front ends, access log
//     -> EngineState                                      rules, identity, lists
//     -> Published<ServerSnapshot>                        all of it, under one version
//     -> ServerWorker, FrontendThread                     each between two turns of its loop
//
// Everything is checked before anything changes: mistakes are reported, and all stays as it was. A
// watch starts before its files are read, so no change is missed: if it starts after the text that
// names its files was read, all is read once more.
//
// One thread, the control thread, which runs the loop. Other threads post to it: the file watch
// posts a reload, and the rules' own file comes in by take_rules(), which waits for the result.
#pragma once

#include "app/config/configuration.h"
#include "app/server/log_line.h"
#include "app/server/rule_feed.h"
#include "app/server/server_facts.h"
#include "app/server/snapshot.h"
#include "base/published.h"
#include "config/diagnostics.h"
#include "embed/engine_state.h"
#include "frontend/frontend.h"
#include "metrics/registry.h"
#include "net/event_loop.h"
#include "net/service_manager.h"
#include "net/ticket_keys.h"
#include "rules/source/file_watch.h"
#include "rules/source/rule_source.h"
#include "rules/source/watched_paths.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace sluice::app {

class Control {
 public:
  // All but the texts outlive it.
  struct Parts {
    std::string file;  // the configuration
    std::string text;  // as read at the start
    Say say;           // from the control thread
    Say say_later;     // from any thread
    const Clock& clock;
    net::EventLoop& loop;
    net::ServiceManager& manager;
    std::span<const std::unique_ptr<frontend::Frontend>> frontends;  // as frontends() lists them
    std::function<void()> wake;  // makes serving threads take the new snapshot
    // Called in the control thread when upstreams change: servers of the named ones start anew.
    std::function<void(std::span<const std::string>)> upstreams_replaced;
  };
  explicit Control(Parts parts);
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control() = default;

  // ---- the start --------------------------------------------------------------------------------

  // Reads the configuration and watches its files. Rules in a file of their own come with open().
  [[nodiscard]] bool read(config::Diagnostics& diagnostics);
  // Opens everything it names, and publishes the first snapshot. Both arguments outlive this.
  [[nodiscard]] bool open(metrics::Registry& registry, ServerFacts& facts,
                          config::Diagnostics& diagnostics);

  // ---- while it serves --------------------------------------------------------------------------

  void reload();
  // If the file has changed since it was read.
  void reload_if_changed();
  // The file of the access log was renamed.
  void reopen_log();
  // Stops watching and waiting; before the loop is gone.
  void stop();

  // In force.
  [[nodiscard]] const Configuration& configuration() const noexcept { return in_force_; }
  [[nodiscard]] const Published<ServerSnapshot>& published() const noexcept { return published_; }
  [[nodiscard]] embed::EngineState& state() noexcept { return *state_; }
  [[nodiscard]] const RuleFeed* feed() const noexcept { return feed_.get(); }  // null: none

 private:
  // The opened files of front ends and logs.
  struct Files {
    frontend::FrontendConfigs frontends;
    AccessLogSink log;
  };

  [[nodiscard]] Configuration read_with(const std::string& text, const embed::RulesText& rules,
                                        config::Diagnostics& diagnostics) const;
  [[nodiscard]] Configuration read_rules(const embed::RulesText& rules,
                                         config::Diagnostics& diagnostics) const;
  [[nodiscard]] bool apply_file(config::Diagnostics& diagnostics);
  [[nodiscard]] Files load(const ServeConfig& serve, config::Diagnostics& diagnostics);
  [[nodiscard]] Parsed<void> take_rules(const rules::Fetched& fetched);
  [[nodiscard]] Parsed<void> apply_rules(const rules::Fetched& fetched);
  [[nodiscard]] Parsed<void> try_rules(const rules::Fetched& fetched);
  void publish_all(const Configuration& configuration, Files files);
  void publish_rules(const Configuration& configuration);
  [[nodiscard]] ServerSnapshot with_rules(ServerSnapshot snapshot,
                                          const Configuration& configuration) const;
  void publish(ServerSnapshot snapshot);
  void tell_replaced_upstreams(const ServerSnapshot& next) const;
  [[nodiscard]] ServerSnapshot snapshot() const { return *published_.get(); }

  bool watch(rules::WatchedPaths paths);
  [[nodiscard]] std::vector<std::string> need_restart(const Configuration& configuration) const;

  const Parts parts_;
  const std::thread::id thread_;
  metrics::Registry* registry_ = nullptr;  // set by open(), as are the following
  ServerFacts* facts_ = nullptr;
  net::TicketRotation tickets_;  // kept over all reloads, so that clients resume their sessions
  std::unique_ptr<rules::FileWatch> watch_;
  rules::WatchedPaths watched_;  // by watch_
  rules::WatchedPaths named_;    // by the configuration in force
  Configuration began_with_;     // for settings that need a restart
  Configuration in_force_;
  std::string text_;  // of the file in force
  // Of the rules' own file, once read.
  embed::RulesText rules_{.text = "rules: []", .file = {}};
  std::unique_ptr<embed::EngineState> state_;
  Published<ServerSnapshot> published_;

  // Rules from the feed's thread, which waits for the result.
  std::mutex mutex_;
  bool stopped_ = false;
  std::shared_ptr<std::promise<Parsed<void>>> waiting_;

  std::unique_ptr<RuleFeed> feed_;  // last: its thread uses the others. Null: none
};

}  // namespace sluice::app
