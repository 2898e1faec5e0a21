#include "app/server/control.h"

#include "app/config/frontends.h"
#include "app/config/without_effect.h"
#include "app/server/logged_fields.h"
#include "app/server/serve_files.h"
#include "base/read_file.h"
#include "base/text.h"
#include "config/document.h"
#include "rules/parse_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

namespace sluice::app {
namespace {

// Routes read paths as the rules do.
bool reads_paths_alike(const rules::RuleList& a, const rules::RuleList& b) noexcept {
  const auto same = [](const auto& one, const auto& other) {
    return one.everywhere == other.everywhere && one.hosts == other.hosts;
  };
  return same(a.case_insensitive_paths, b.case_insensitive_paths) &&
         same(a.ignore_path_parameters, b.ignore_path_parameters) &&
         a.escaped_slashes == b.escaped_slashes;
}

rules::WatchedPaths union_of(const rules::WatchedPaths& a, const rules::WatchedPaths& b) {
  rules::WatchedPaths all;
  std::ranges::set_union(a.files, b.files, std::back_inserter(all.files));
  std::ranges::set_union(a.folders, b.folders, std::back_inserter(all.folders));
  return all;
}

}  // namespace

Control::Control(Parts parts)
    : parts_(std::move(parts)),
      thread_(std::this_thread::get_id()),
      tickets_(parts_.loop, std::make_shared<net::TicketKeys>()),
      text_(parts_.text) {}

// ---- the start --------------------------------------------------------------------------------

bool Control::read(config::Diagnostics& diagnostics) {
  config::Diagnostics found;
  in_force_ = read_with(text_, rules_, found);
  // Rules from another file cause a second read, which reports the warnings.
  if (!found.ok() || !in_force_.rules_file) diagnostics = std::move(found);
  if (!diagnostics.ok()) return false;
  named_ = named_files(in_force_);
  watch(named_);
  return true;
}

bool Control::open(metrics::Registry& registry, ServerFacts& facts,
                   config::Diagnostics& diagnostics) {
  registry_ = &registry;
  facts_ = &facts;
  began_with_ = in_force_;
  state_ = embed::EngineState::open(in_force_, parts_.clock, diagnostics);
  Files files = load(in_force_.serve, diagnostics);  // all mistakes are reported at once
  if (state_ == nullptr || !diagnostics.ok()) return false;
  publish_all(in_force_, std::move(files));
  if (!in_force_.rules_file) return true;

  const embed::RulesFileConfig& config = *in_force_.rules_file;
  feed_ = std::make_unique<RuleFeed>(
      config, RuleFeed::Parts{.clock = parts_.clock,
                              .accept = [this](const auto& fetched) { return take_rules(fetched); },
                              .say = parts_.say_later});
  Parsed<void> started = feed_->start();
  if (!started) {
    in_force_.files.error(config.file, std::move(started.error()), diagnostics);
    return false;
  }
  (void)read_with(text_, rules_, diagnostics);  // for its warnings
  return diagnostics.ok();
}

// ---- the file, and files that it names --------------------------------------------------------

// Between reading the file and watching it.
void Control::reload_if_changed() {
  const Parsed<std::string> text =
      read_trusted_file(parts_.file, config::DocumentOptions{}.bytes_max);
  if (!text || *text != parts_.text) reload();
}

void Control::reload() {
  if (facts_->phase() == Phase::draining) return;
  parts_.manager.reloading(parts_.clock.now().mono);
  if (feed_ != nullptr) feed_->read_now();
  config::Diagnostics diagnostics;
  if (apply_file(diagnostics)) return parts_.manager.ready("serving");
  facts_->kept_the_old(parts_.clock.now().wall());
  parts_.say(LogLevel::error, "kept the old configuration:\n" + embed::all_of(diagnostics).message);
  parts_.manager.ready("serving; the new file is wrong");
}

// False, with mistakes reported: everything stays as it was.
bool Control::apply_file(config::Diagnostics& diagnostics) {
  Parsed<std::string> text;
  Configuration next;
  rules::WatchedPaths named;
  // While the new files are unusable, the files in force matter as well. A replaced watch no longer
  // reports the changes that it has seen, so all is read again after it. Files that are read with
  // the text and are missing are watched, too, so that creating them is a reload.
  do {
    diagnostics = {};
    text = read_trusted_file(parts_.file, config::DocumentOptions{}.bytes_max);
    if (!text) {
      diagnostics.error(std::move(text.error()));
      return false;
    }
    next = read_with(*text, rules_, diagnostics);
    if (!next.is_well_formed) return false;
    if (next.rules_file != began_with_.rules_file) {
      diagnostics.error({.message = "rules_from has changed, which needs a restart",
                         .remedy = "restart the server, or write what it was before"});
      return false;
    }
    named = named_files(next);
  } while (watch(union_of(named, named_)));
  Files files = load(next.serve, diagnostics);
  if (!diagnostics.ok()) {
    (void)embed::load_clients(next.clients, diagnostics);  // all mistakes are reported at once
    return false;
  }
  if (!state_->replace(next, diagnostics)) return false;
  publish_all(next, std::move(files));

  named_ = std::move(named);
  text_ = *std::move(text);
  in_force_ = std::move(next);
  const std::size_t rules = in_force_.rules.rules.size();
  facts_->took_over(rules, parts_.clock.now().wall());
  parts_.say(LogLevel::info, "configuration reloaded: " + counted(rules, "rule"));
  if (diagnostics.warnings() > 0) parts_.say(LogLevel::warning, embed::all_of(diagnostics).message);
  const std::vector<std::string> later = need_restart(in_force_);
  if (!later.empty()) {
    parts_.say(LogLevel::warning, fmt::format("needs a restart, and is as before until then: {}",
                                              fmt::join(later, ", ")));
  }
  return true;
}

// The rules are those of the file itself, unless it names another.
Configuration Control::read_with(const std::string& text, const embed::RulesText& rules,
                                 config::Diagnostics& diagnostics) const {
  // The number of workers stays as at the start.
  const unsigned workers = state_ != nullptr ? workers_of(began_with_.serve) : 0;
  return read_configuration(text, parts_.file, diagnostics, &rules, workers);
}

Control::Files Control::load(const ServeConfig& serve, config::Diagnostics& diagnostics) {
  Files files;
  const bool is_start = published_.version() == 0;
  const ServerSnapshot before = is_start ? ServerSnapshot{} : snapshot();
  for (std::size_t i = 0; i < parts_.frontends.size(); ++i) {
    const frontend::FrontendConfig* const in_force = is_start ? nullptr : before.frontends[i].get();
    files.frontends.push_back(
        parts_.frontends[i]->load(serve.frontends[i], in_force,
                                  {.files = serve.files, .tickets = tickets_.keys()}, diagnostics));
  }
  files.log = before.access_log;
  if (is_start || serve.access_log != files.log.config) {
    if (auto opened = load_access_log(serve, before.access_log, diagnostics)) {
      files.log = *std::move(opened);
    }
  }
  return files;
}

// ---- the rules' own file ----------------------------------------------------------------------

// Called by the control thread at the start; later by the feed's thread, which waits for the
// control thread, or until that stops.
Parsed<void> Control::take_rules(const rules::Fetched& fetched) {
  if (std::this_thread::get_id() == thread_) return apply_rules(fetched);
  auto handed = std::make_shared<std::promise<Parsed<void>>>();
  std::future<Parsed<void>> result = handed->get_future();
  {
    const std::lock_guard guard{mutex_};
    if (stopped_) return mistake("the server is stopping");
    waiting_ = std::move(handed);
  }
  parts_.loop.post([this, fetched] {
    Parsed<void> applied = try_rules(fetched);
    const std::lock_guard guard{mutex_};
    if (auto waiting = std::exchange(waiting_, nullptr)) waiting->set_value(std::move(applied));
  });
  return result.get();
}

// No failure with rules ends the loop, and with it the process.
Parsed<void> Control::try_rules(const rules::Fetched& fetched) {
  try {
    return apply_rules(fetched);
  } catch (const std::exception& exception) {
    return mistake(exception.what());
  }
}

// Reads nothing else: a file that is unreadable at the moment does not keep rules from coming into
// force. Only routes depend on them, if these read paths differently than before.
Configuration Control::read_rules(const embed::RulesText& rules,
                                  config::Diagnostics& diagnostics) const {
  rules::RuleList list = rules::parse_rules_text(rules.text, rules.file, diagnostics);
  if (diagnostics.ok() && !reads_paths_alike(list, in_force_.rules)) {
    diagnostics = {};
    return read_with(text_, rules, diagnostics);
  }
  Configuration next = in_force_;
  next.rules = std::move(list);
  if (diagnostics.ok()) warn_of_rules_without_effect(next, diagnostics);
  return next;
}

Parsed<void> Control::apply_rules(const rules::Fetched& fetched) {
  embed::RulesText rules{.text = fetched.text, .file = fetched.where};
  config::Diagnostics diagnostics;
  Configuration next = read_rules(rules, diagnostics);
  if (!diagnostics.ok() || !state_->replace_rules(next, diagnostics)) {
    return tl::unexpected(embed::all_of(diagnostics));
  }
  publish_rules(next);

  const bool is_first = rules_.file.empty();
  rules_ = std::move(rules);
  in_force_ = std::move(next);
  const std::size_t count = in_force_.rules.rules.size();
  facts_->took_rules(count);
  if (is_first) return {};  // the start reports them
  parts_.say(LogLevel::info,
             fmt::format("rules reloaded from {}: {}", rules_.file, counted(count, "rule")));
  if (diagnostics.warnings() > 0) parts_.say(LogLevel::warning, embed::all_of(diagnostics).message);
  return {};
}

// ---- the log ----------------------------------------------------------------------------------

void Control::reopen_log() {
  ServerSnapshot next = snapshot();
  const AccessLogConfig& config = next.access_log.config;
  if (config.file.empty() || config.file == "-") return;
  auto opened = open_access_log(config, next.access_log);
  if (!opened) {
    return parts_.say(LogLevel::error, "kept the old access log: " + opened.error().text());
  }
  next.access_log = *std::move(opened);
  publish(std::move(next));
  parts_.say(LogLevel::info, "access log reopened");
}

// ---- publication ------------------------------------------------------------------------------

void Control::publish_all(const Configuration& configuration, Files files) {
  const ServeConfig& serve = configuration.serve;
  ServerSnapshot next;
  if (published_.version() > 0) next = snapshot();
  next.frontends.clear();
  for (std::size_t i = 0; i < parts_.frontends.size(); ++i) {
    next.frontends.push_back(
        parts_.frontends[i]->accepted(std::move(files.frontends[i]), *registry_));
  }
  next.access_log = std::move(files.log);
  next.drain = serve.drain;
  publish(with_rules(std::move(next), configuration));
}

void Control::publish_rules(const Configuration& configuration) {
  ServerSnapshot next = snapshot();
  const ServeConfig& serve = configuration.serve;
  if (!reads_paths_alike(configuration.rules, in_force_.rules)) {
    for (std::size_t i = 0; i < parts_.frontends.size(); ++i) {
      frontend::Frontend& frontend = *parts_.frontends[i];
      next.frontends[i] = frontend.accepted(
          frontend.with_paths(next.frontends[i], *serve.frontends[i]), *registry_);
    }
  }
  publish(with_rules(std::move(next), configuration));
}

ServerSnapshot Control::with_rules(ServerSnapshot snapshot,
                                   const Configuration& configuration) const {
  snapshot.engine = state_->content();
  snapshot.counters = std::make_shared<const frontend::DecisionCounters>(
      *registry_, snapshot.engine.snapshot->shared_rules());
  snapshot.logged =
      std::make_shared<const frontend::AccessFormat::Options>(logged_fields(configuration));
  return snapshot;
}

void Control::publish(ServerSnapshot snapshot) {
  if (published_.version() > 0) tell_replaced_upstreams(snapshot);
  published_.publish(std::make_shared<const ServerSnapshot>(std::move(snapshot)));
  parts_.wake();
}

void Control::tell_replaced_upstreams(const ServerSnapshot& next) const {
  const std::shared_ptr<const ServerSnapshot> before = published_.get();
  for (std::size_t i = 0; i < parts_.frontends.size(); ++i) {
    if (next.frontends[i] == before->frontends[i]) continue;
    const auto replaced =
        parts_.frontends[i]->replaced_upstreams(*before->frontends[i], *next.frontends[i]);
    if (!replaced.empty()) parts_.upstreams_replaced(replaced);
  }
}

// ---- watch, stop, restart ----------------------------------------------------------------------

// Watches the file itself, and the files it names. True: a new watch.
bool Control::watch(rules::WatchedPaths paths) {
  paths.files.push_back(std::filesystem::absolute(parts_.file).string());
  if (paths == watched_) return false;
  auto started =
      rules::FileWatch::start(paths, {}, [this] { parts_.loop.post([this] { reload(); }); });
  if (!started) {
    parts_.say(LogLevel::warning, "changes of files are not noticed: " + started.error().text());
    return false;
  }
  watch_ = *std::move(started);
  watched_ = std::move(paths);
  return true;
}

void Control::stop() {
  watch_ = nullptr;
  {
    const std::lock_guard guard{mutex_};
    stopped_ = true;
    if (auto waiting = std::exchange(waiting_, nullptr)) {
      waiting->set_value(mistake("the server is stopping"));
    }
  }
  if (feed_ != nullptr) feed_->stop();
}

std::vector<std::string> Control::need_restart(const Configuration& configuration) const {
  const ServeConfig& before = began_with_.serve;
  const ServeConfig& now = configuration.serve;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < now.frontends.size(); ++i) {
    if (now.frontends[i]->listens_like(*before.frontends[i])) continue;
    keys.push_back(fmt::format("listen.{}", frontends()[i]->name()));
  }
  if (now.workers != before.workers) keys.emplace_back("workers");
  if (configuration.state.memory != began_with_.state.memory) keys.emplace_back("state.memory");
  if (configuration.state.file != began_with_.state.file) keys.emplace_back("state.file");
  return keys;
}

}  // namespace sluice::app
