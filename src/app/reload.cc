#include "app/reload.h"

#include "app/serve_files.h"
#include "app/without_effect.h"
#include "base/read_file.h"
#include "base/text.h"
#include "config/document.h"
#include "rules/parse_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <utility>

namespace sluice::app {
namespace {

// Routes read paths as the rules do.
bool reads_paths_alike(const rules::RuleList& a, const rules::RuleList& b) noexcept {
  const auto same = [](const auto& one, const auto& other) {
    return one.everywhere == other.everywhere && one.hosts == other.hosts;
  };
  return same(a.ignore_case, b.ignore_case) && same(a.ignore_parameters, b.ignore_parameters) &&
         a.escaped_slashes == b.escaped_slashes;
}

rules::WatchedPaths union_of(const rules::WatchedPaths& a, const rules::WatchedPaths& b) {
  rules::WatchedPaths all;
  std::ranges::set_union(a.files, b.files, std::back_inserter(all.files));
  std::ranges::set_union(a.folders, b.folders, std::back_inserter(all.folders));
  return all;
}

}  // namespace

Reload::Reload(Parts parts, const Configuration& found)
    : parts_(std::move(parts)),
      running_(parts_.running),
      named_(named_files(found)),
      tickets_(parts_.loop, std::make_shared<net::TicketKeys>()),
      text_(parts_.text),
      in_force_(found) {
  watch(named_);
}

Configuration Reload::with_rules(config::Diagnostics& diagnostics) const {
  return read_configuration(text_, parts_.file, diagnostics, &rules_);
}

void Reload::opened_with(Configuration configuration) {
  log_ = configuration.serve.access_log;
  drain_ = configuration.serve.drain;
  in_force_ = configuration;
  began_with_ = std::move(configuration);
}

// The file itself, and what it names.
void Reload::watch(rules::WatchedPaths paths) {
  paths.files.push_back(std::filesystem::absolute(parts_.file).string());
  if (paths == watched_) return;
  auto started =
      rules::FileWatch::start(paths, {}, [this] { parts_.loop.post([this] { run(); }); });
  if (!started) {
    return parts_.say(LogLevel::warning,
                      "changes of files are not noticed: " + started.error().text());
  }
  watch_ = *std::move(started);
  watched_ = std::move(paths);
}

// Between the reading of the file and the watch over it.
void Reload::run_if_changed() {
  const Parsed<std::string> text =
      read_trusted_file(parts_.file, config::DocumentOptions{}.bytes_max);
  if (!text || *text != parts_.text) run();
}

void Reload::run() {
  if (running_.facts->phase() == Phase::draining) return;
  parts_.manager.reloading(parts_.clock.now().mono);
  if (running_.feed != nullptr) running_.feed->read_now();
  config::Diagnostics diagnostics;
  if (take_over(diagnostics)) return parts_.manager.ready("serving");
  running_.facts->kept_the_old(parts_.clock.now().wall());
  parts_.say(LogLevel::error, "kept the old configuration:\n" + all_of(diagnostics).message);
  parts_.manager.ready("serving; the new file is wrong");
}

// False, with what is wrong reported: everything stays as it was.
bool Reload::take_over(config::Diagnostics& diagnostics) {
  Parsed<std::string> text = read_trusted_file(parts_.file, config::DocumentOptions{}.bytes_max);
  if (!text) {
    diagnostics.error(std::move(text.error()));
    return false;
  }
  const std::lock_guard turn{turn_};
  const Configuration configuration = read_configuration(
      *text, parts_.file, diagnostics, running_.feed != nullptr ? &rules_ : nullptr);
  if (!diagnostics.ok()) return false;
  if (configuration.rules_file != began_with_.rules_file) {
    diagnostics.error({.message = "rules_from has changed, which needs a restart",
                       .remedy = "restart the server, or write what it was before"});
    return false;
  }
  // Before they are read. While the new ones cannot be used, those in force matter as well.
  rules::WatchedPaths named = named_files(configuration);
  watch(union_of(named, named_));
  const Named files = load(configuration.serve, diagnostics);
  if (!diagnostics.ok()) {
    (void)load_clients(configuration.clients, diagnostics);  // all that is wrong is told at once
    return false;
  }
  if (!running_.room->replace(configuration, diagnostics)) return false;
  named_ = std::move(named);
  text_ = *std::move(text);
  in_force_ = configuration;
  put_in_force(configuration.serve, files);
  const std::size_t rules = configuration.rules.rules.size();
  running_.facts->took_over(rules, parts_.clock.now().wall());
  parts_.say(LogLevel::info, "took over the new configuration: " + counted(rules, "rule"));
  if (diagnostics.warnings() > 0) parts_.say(LogLevel::warning, all_of(diagnostics).message);
  const std::vector<std::string_view> later = need_restart(configuration);
  if (!later.empty()) {
    parts_.say(LogLevel::warning, fmt::format("needs a restart, and is as before until then: {}",
                                              fmt::join(later, ", ")));
  }
  return true;
}

// What suffices for other addresses may be too little for those that are open, unless it is a
// token.
bool Reload::has_same_admin(const ServeConfig& serve) const {
  return serve.listen.admin == began_with_.serve.listen.admin;
}

Reload::Named Reload::load(const ServeConfig& serve, config::Diagnostics& diagnostics) {
  Named files{.tls = load_tls(serve, diagnostics, ticket_keys()),
              .guard = load_guard(serve, diagnostics),
              .log = std::nullopt};
  if (serve.access_log != log_) files.log = load_access_log(serve, diagnostics);
  if (has_same_admin(serve) && running_.admin_needs_token && serve.admin.token_file.empty()) {
    diagnostics.error({.message = "the admin listener can be reached from elsewhere, and would ask "
                                  "for no token",
                       .remedy = "write admin: {token_file: FILE}"});
  }
  return files;
}

void Reload::put_in_force(const ServeConfig& serve, const Named& files) {
  const ServerWorker::Serving serving{.options = metered(serve.gateway, *running_.registry),
                                      .tls = files.tls};
  for (const auto& worker : running_.workers) {
    worker->use(serving);
    if (files.log) worker->log_to(*files.log);
  }
  const bool suits = has_same_admin(serve) || !serve.admin.token_file.empty();
  if (running_.admin != nullptr && suits) running_.admin->use(files.guard);
  log_ = serve.access_log;
  drain_ = serve.drain;
}

std::vector<std::string_view> Reload::need_restart(const Configuration& configuration) const {
  const ServeConfig& before = began_with_.serve;
  const ServeConfig& now = configuration.serve;
  std::vector<std::string_view> keys;
  if (now.listen.gateway != before.listen.gateway) keys.emplace_back("listen.gateway");
  if (now.listen.admin != before.listen.admin) keys.emplace_back("listen.admin");
  if (now.workers != before.workers) keys.emplace_back("workers");
  if (configuration.state.memory != began_with_.state.memory) keys.emplace_back("state.memory");
  if (configuration.state.file != began_with_.state.file) keys.emplace_back("state.file");
  return keys;
}

// From the thread of the feed to ours.
void Reload::say_later(LogLevel level, std::string line) {
  parts_.loop.post([this, level, line = std::move(line)] { parts_.say(level, line); });
}

Parsed<void> Reload::take_rules(const rules::Fetched& fetched) {
  const std::lock_guard turn{turn_};
  RulesText rules{.text = fetched.text, .file = fetched.where};
  config::Diagnostics diagnostics;
  Configuration next = in_force_;
  next.rules = rules::parse_rules_text(rules.text, rules.file, diagnostics);
  warn_of_no_effect(next, diagnostics);
  if (!diagnostics.ok()) return tl::unexpected(all_of(diagnostics));
  const bool has_other_routes =
      !running_.workers.empty() && !reads_paths_alike(next.rules, in_force_.rules);
  if (has_other_routes) {
    diagnostics = {};  // the same is found again
    next = read_configuration(text_, parts_.file, diagnostics, &rules);
  }
  if (!diagnostics.ok() || !running_.room->replace_rules(next, diagnostics)) {
    return tl::unexpected(all_of(diagnostics));
  }
  if (has_other_routes) {
    const auto options = metered(next.serve.gateway, *running_.registry);
    for (const auto& worker : running_.workers) worker->use(options);
  }
  const std::size_t count = next.rules.rules.size();
  in_force_ = std::move(next);
  rules_ = std::move(rules);
  running_.facts->took_rules(count);
  if (running_.workers.empty()) return {};  // the first ones go without saying
  say_later(LogLevel::info,
            fmt::format("took over the rules in {}: {}", rules_.file, counted(count, "rule")));
  if (diagnostics.warnings() > 0) say_later(LogLevel::warning, all_of(diagnostics).message);
  return {};
}

}  // namespace sluice::app
