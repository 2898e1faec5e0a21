#include "app/server.h"

#include "app/listeners.h"
#include "app/overview.h"
#include "app/request_observer.h"
#include "app/serve_files.h"
#include "app/start_check.h"
#include "base/descriptor_limit.h"
#include "base/duration.h"
#include "base/mapped_files.h"
#include "frontend/server_metrics.h"
#include "metrics/process_metrics.h"
#include "net/listen.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace sluice::app {
namespace {

constexpr Nanos kLookEvery{std::chrono::milliseconds{20}};

// Those that the file names, inherited or not, and inherited ones with that name besides.
Parsed<std::vector<net::Listener>> open_admin_listeners(
    const ServeConfig& serve, std::vector<net::InheritedListener>& inherited) {
  std::vector<net::Listener> listeners;
  for (const net::Endpoint& endpoint : serve.listen.admin) {
    if (auto match = take_matching(inherited, endpoint)) {
      listeners.push_back(*std::move(match));
      continue;
    }
    auto opened = net::listen_on(endpoint);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    listeners.push_back(*std::move(opened));
  }
  std::vector<net::InheritedListener> left;
  for (net::InheritedListener& one : inherited) {
    if (one.name != "admin") {
      left.push_back(std::move(one));
      continue;
    }
    if (serve.admin.token_file.empty() && !is_on_this_machine(one.listener.endpoint())) {
      return mistake(fmt::format("the inherited socket {} can be reached from elsewhere, and asks "
                                 "for no token",
                                 described(one)),
                     "write admin: {token_file: FILE}, or let it listen on 127.0.0.1");
    }
    listeners.push_back(std::move(one.listener));
  }
  inherited.swap(left);
  return listeners;
}

}  // namespace

// ---- opening ----------------------------------------------------------------------------------

std::unique_ptr<Server> Server::open(const ServerOptions& options, const Clock& clock,
                                     config::Diagnostics& diagnostics) {
  std::unique_ptr<Server> server{new Server{options, clock}};
  return server->open_all(diagnostics) ? std::move(server) : nullptr;
}

Server::Server(ServerOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      drain_soon_(net::Callback<>::to<&Server::drain>(*this)),
      drained_(net::Callback<>::to<&Server::look>(*this)),
      watchdog_(net::Callback<>::to<&Server::feed_watchdog>(*this)),
      ejections_(options_.say) {}

Server::~Server() { end(); }

// Who asks others goes first: the feed and the admin listener ask workers, and workers ask the
// resolver, which answers on their loops. So these are there until it has gone.
void Server::end() {
  if (reload_ != nullptr) reload_->stop();
  if (running_.feed != nullptr) running_.feed->stop();
  running_.admin = nullptr;
  for (const auto& worker : running_.workers) worker->stop();
  for (const auto& worker : running_.workers) worker->join();
  resolver_ = nullptr;
  running_.workers.clear();
}

// Rules of another file come when there is somebody to take them: until then there are none.
bool Server::open_all(config::Diagnostics& diagnostics) {
  raise_descriptor_limit();
  const RulesText none{.text = "rules: []", .file = {}};
  config::Diagnostics found;
  Configuration configuration = read_configuration(options_.text, options_.file, found, &none);
  // With the rules of another file all is read again, and its warnings are told then.
  if (!found.ok() || !configuration.rules_file) diagnostics = std::move(found);
  if (!diagnostics.ok()) return false;
  if (configuration.serve.listen.gateway.empty()) {
    diagnostics.error(nothing_to_listen_on(configuration.serve.listen));
    return false;
  }
  if (!open_loop(diagnostics)) return false;
  reload_ = std::make_unique<Reload>(Reload::Parts{.file = options_.file,
                                                   .text = options_.text,
                                                   .say = options_.say,
                                                   .clock = clock_,
                                                   .loop = *loop_,
                                                   .manager = manager_,
                                                   .running = running_},
                                     configuration);
  const unsigned count = workers_of(configuration.serve);
  open_metrics(count);
  explain_lost_files();
  running_.room = EngineRoom::open(configuration, clock_, diagnostics, running_.registry.get());
  if (running_.room == nullptr) {
    // All that is wrong with files is told at once.
    (void)load_tls(configuration.serve, diagnostics);
    (void)load_guard(configuration.serve, diagnostics);
    return false;
  }
  if (configuration.rules_file && !open_rules(configuration, diagnostics)) return false;

  const auto turn = reload_->turn();
  if (configuration.rules_file) {
    configuration = reload_->with_rules(diagnostics);
    if (!diagnostics.ok()) return false;
  }
  const ServeConfig& serve = configuration.serve;
  auto inherited = net::take_inherited_listeners();
  if (!inherited) {
    diagnostics.error(std::move(inherited.error()));
    return false;
  }
  if (!open_workers(serve, count, *inherited, diagnostics)) return false;
  running_.facts->begin(configuration.rules.rules.size(), clock_.now());
  if (!open_admin(serve, *inherited, diagnostics)) return false;
  for (const net::InheritedListener& unused : *inherited) {
    options_.say(LogLevel::warning,
                 fmt::format("the inherited socket {} is not used: no listener is there",
                             described(unused)));
  }
  reload_->opened_with(std::move(configuration));
  return true;
}

bool Server::open_loop(config::Diagnostics& diagnostics) {
  manager_ = net::ServiceManager::from_environment();
  auto loop = net::EventLoop::create(clock_);
  if (!loop) {
    diagnostics.error(std::move(loop.error()));
    return false;
  }
  loop_ = *std::move(loop);
  // Before there are threads: they inherit what is blocked.
  auto signals =
      net::SignalSource::create(*loop_, net::Callback<int>::to<&Server::on_signal>(*this));
  if (!signals) {
    diagnostics.error(std::move(signals.error()));
    return false;
  }
  signals_ = *std::move(signals);
  resolver_ = std::make_unique<net::Resolver>();
  return true;
}

bool Server::open_rules(const Configuration& configuration, config::Diagnostics& diagnostics) {
  const RulesFileConfig& config = *configuration.rules_file;
  running_.feed = std::make_unique<RuleFeed>(
      config, RuleFeed::Parts{
                  .clock = clock_,
                  .accept = [this](const auto& fetched) { return reload_->take_rules(fetched); },
                  .say = who_hears().say});
  Parsed<void> started = running_.feed->start();
  if (!started) configuration.files.error(config.file, std::move(started.error()), diagnostics);
  return started.has_value();
}

// One shard for each worker, and one more for all that is not counted by them. The series in that
// one are told by different threads, each of them by one.
void Server::open_metrics(unsigned workers) {
  running_.registry = std::make_unique<metrics::Registry>(workers + 1);
  frontend::declare_server_metrics(*running_.registry);
  metrics::collect_process(*running_.registry);
  metrics::show_build(*running_.registry,
                      {.version = options_.version, .revision = options_.revision});
  running_.meters = std::make_unique<const frontend::RequestMeters>(*running_.registry, "gateway");
  running_.facts = std::make_unique<ServerFacts>(
      ServerFacts::Build{.version = options_.version, .file = options_.file}, *running_.registry,
      workers);
}

bool Server::open_workers(const ServeConfig& serve, unsigned count,
                          std::vector<net::InheritedListener>& inherited,
                          config::Diagnostics& diagnostics) {
  const ServerWorker::Serving serving{.options = metered(serve.gateway, *running_.registry),
                                      .tls = load_tls(serve, diagnostics, reload_->ticket_keys())};
  if (!diagnostics.ok()) {
    (void)load_guard(serve, diagnostics);
    return false;
  }
  auto opened = open_listeners(serve.listen.gateway, std::move(inherited), count);
  if (!opened) {
    serve.files.error(std::move(opened.error()), diagnostics);
    return false;
  }
  inherited = std::move(opened->left);
  const auto log = load_access_log(serve, diagnostics);
  if (!log) return false;
  for (unsigned i = 0; i < count; ++i) {
    auto loop = net::EventLoop::create(clock_);
    if (!loop) {
      diagnostics.error(std::move(loop.error()));
      return false;
    }
    running_.workers.push_back(
        std::make_unique<ServerWorker>(ServerWorker::Parts{.loop = *std::move(loop),
                                                           .resolver = *resolver_,
                                                           .room = *running_.room,
                                                           .meters = *running_.meters,
                                                           .who = who_hears(),
                                                           .workers = count,
                                                           .shard = i},
                                       *log, serving));
    for (OpenListener& open : opened->of_worker[i]) {
      const std::string endpoint = open.listener.endpoint().text();
      if (running_.workers.back()->listen(std::move(open))) continue;
      Diagnostic cannot{.message = fmt::format("cannot watch {}", endpoint), .remedy = {}};
      diagnostics.error(std::move(cannot));
      return false;
    }
  }
  for (std::string& endpoint : opened->endpoints) {
    running_.facts->listeners.push_back({.name = "gateway", .endpoint = std::move(endpoint)});
  }
  return true;
}

// From a worker's thread to ours.
RequestObserver::Operator Server::who_hears() {
  const auto say = [this](LogLevel level, std::string line) {
    loop_->post([this, level, line = std::move(line)] { options_.say(level, line); });
  };
  const auto warn = [this](std::string line) {
    loop_->post([this, line = std::move(line)] {
      if (warned_.insert(line).second) options_.say(LogLevel::warning, line);
    });
  };
  const auto ejected = [this](std::string server, std::string text) {
    loop_->post([this, server = std::move(server), text = std::move(text)] {
      ejections_.ejected(server, text);
    });
  };
  const auto recovered = [this](std::string server) {
    loop_->post([this, server = std::move(server)] { ejections_.recovered(server); });
  };
  return {.say = say, .warn = warn, .ejected = ejected, .recovered = recovered};
}

bool Server::open_admin(const ServeConfig& serve, std::vector<net::InheritedListener>& inherited,
                        config::Diagnostics& diagnostics) {
  auto listeners = open_admin_listeners(serve, inherited);
  if (!listeners) serve.files.error(std::move(listeners.error()), diagnostics);
  if (!listeners || listeners->empty()) return listeners.has_value();
  running_.admin_needs_token = std::ranges::any_of(*listeners, [](const net::Listener& listener) {
    return !is_on_this_machine(listener.endpoint());
  });
  auto guard = load_guard(serve, diagnostics);
  if (guard == nullptr) return false;
  auto overview = std::make_unique<Overview>(Overview::Parts{.facts = *running_.facts,
                                                             .room = *running_.room,
                                                             .registry = *running_.registry,
                                                             .workers = running_.workers,
                                                             .feed = running_.feed.get(),
                                                             .clock = clock_},
                                             running_.workers.size());
  auto opened =
      AdminListener::open(*std::move(listeners), std::move(guard), std::move(overview), clock_);
  if (!opened) {
    diagnostics.error(std::move(opened.error()));
    return false;
  }
  running_.admin = *std::move(opened);
  for (const std::string& endpoint : running_.admin->endpoints()) {
    running_.facts->listeners.push_back({.name = "admin", .endpoint = endpoint});
  }
  return true;
}

// ---- life -------------------------------------------------------------------------------------

void Server::run() {
  for (const auto& worker : running_.workers) worker->start();
  if (running_.admin != nullptr) running_.admin->start();
  reload_->run_if_changed();
  running_.facts->enter(Phase::serving);
  manager_.ready("serving");
  if (manager_.watchdog()) feed_watchdog();
  loop_->run();
  end();
}

// Four times as often as it has to be, as long as every worker goes on: one that hangs keeps its
// connections waiting for ever, and only a restart helps.
void Server::feed_watchdog() {
  bool all_go_on = true;
  for (const auto& worker : running_.workers) all_go_on &= worker->has_turned();
  if (all_go_on) manager_.alive();
  loop_->set(watchdog_, *manager_.watchdog() / 4);
}

void Server::on_signal(int number) {
  if (number == SIGHUP) return reload_->run();
  if (number == SIGUSR1) return reopen_log();
  if (number != SIGTERM && number != SIGINT) return;
  if (running_.facts->phase() == Phase::draining) return loop_->stop();
  begin_to_drain();
}

// Whoever turns logs over has given the old file another name.
void Server::reopen_log() {
  const AccessLogConfig& config = reload_->access_log();
  if (config.file.empty() || config.file == "-") return;
  const auto log = open_access_log(config);
  if (!log) return options_.say(LogLevel::error, "kept the old access log: " + log.error().text());
  for (const auto& worker : running_.workers) worker->log_to(*log);
  options_.say(LogLevel::info, "opened the access log anew");
}

// ---- the end ----------------------------------------------------------------------------------

// Those who watch hear of it at once; those who only send requests are served until they do.
void Server::begin_to_drain() {
  running_.facts->enter(Phase::draining);
  manager_.stopping("draining");
  const Nanos delay = reload_->drain().delay;
  if (delay <= Nanos{0}) return drain();
  options_.say(LogLevel::info,
               fmt::format("draining in {}; a second signal ends at once", format_duration(delay)));
  loop_->set(drain_soon_, delay);
}

void Server::drain() {
  options_.say(LogLevel::info, "draining; a second signal ends at once");
  for (const auto& worker : running_.workers) worker->drain();
  drain_until_ = loop_->now().mono + reload_->drain().within;
  loop_->set(drained_, kLookEvery);
}

void Server::look() {
  const bool drained = std::ranges::all_of(running_.workers,
                                           [](const auto& worker) { return worker->is_drained(); });
  if (drained || loop_->now().mono >= drain_until_) return loop_->stop();
  for (const auto& worker : running_.workers) worker->drain();  // they may have ended meanwhile
  loop_->set(drained_, kLookEvery);
}

}  // namespace sluice::app
