#include "app/server.h"

#include "app/listeners.h"
#include "app/overview.h"
#include "app/request_observer.h"
#include "app/serve_files.h"
#include "base/duration.h"
#include "base/read_file.h"
#include "config/document.h"
#include "frontend/gateway/gateway_options.h"
#include "frontend/server_metrics.h"
#include "metrics/process_metrics.h"
#include "net/listen.h"
#include "rules/parse_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>

namespace sluice::app {
namespace {

constexpr Nanos kLookEvery{std::chrono::milliseconds{20}};

// Requests to an upstream are counted under its name.
std::shared_ptr<const gateway::GatewayOptions> metered(gateway::GatewayOptions options,
                                                       metrics::Registry& registry) {
  for (gateway::UpstreamOptions& upstream : options.upstreams) {
    upstream.meters = std::make_shared<const frontend::UpstreamMeters>(registry, upstream.name);
  }
  return std::make_shared<const gateway::GatewayOptions>(std::move(options));
}

Diagnostic nothing_to_listen_on(const ListenConfig& listen) {
  return {.message = listen.admin.empty()
                         ? "the file names nothing to listen on"
                         : "the file names nothing to listen on but admin, which shows what a "
                           "gateway does",
          .remedy =
              "write listen: {gateway: 127.0.0.1:8080}, upstreams and routes, as `sluice "
              "init` does"};
}

// Routes heed case and parameters of paths as the rules do.
bool reads_paths_alike(const rules::RuleList& a, const rules::RuleList& b) noexcept {
  const auto same = [](const auto& one, const auto& other) {
    return one.everywhere == other.everywhere && one.hosts == other.hosts;
  };
  return same(a.ignore_case, b.ignore_case) && same(a.ignore_parameters, b.ignore_parameters);
}

Diagnostic of_access_log(const Diagnostic& what) {
  return {.message = "the access log: " + what.message, .remedy = what.remedy};
}

rules::WatchedPaths union_of(const rules::WatchedPaths& a, const rules::WatchedPaths& b) {
  rules::WatchedPaths all;
  std::ranges::set_union(a.files, b.files, std::back_inserter(all.files));
  std::ranges::set_union(a.folders, b.folders, std::back_inserter(all.folders));
  return all;
}

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
      watchdog_(net::Callback<>::to<&Server::feed_watchdog>(*this)) {}

Server::~Server() { end(); }

// Who asks others goes first: the feed and the admin listener ask workers, and workers ask the
// resolver, which answers on their loops. So these are there until it has gone.
void Server::end() {
  watch_ = nullptr;
  if (feed_ != nullptr) feed_->stop();
  admin_ = nullptr;
  for (const auto& worker : workers_) worker->stop();
  for (const auto& worker : workers_) worker->join();
  resolver_ = nullptr;
  workers_.clear();
}

// Rules of another file come when there is somebody to take them: until then there are none.
bool Server::open_all(config::Diagnostics& diagnostics) {
  const RulesText none{.text = "rules: []", .file = {}};
  Configuration configuration =
      read_configuration(options_.text, options_.file, diagnostics, &none);
  if (!diagnostics.ok()) return false;
  if (configuration.serve.listen.gateway.empty()) {
    diagnostics.error(nothing_to_listen_on(configuration.serve.listen));
    return false;
  }
  if (!open_loop(diagnostics)) return false;
  named_ = named_files(configuration);
  watch(named_);
  text_ = options_.text;
  const std::uint32_t wanted = configuration.serve.workers;
  const unsigned count = wanted > 0 ? wanted : std::max(1U, std::thread::hardware_concurrency());
  open_metrics(count);
  in_force_ = configuration;
  room_ = EngineRoom::open(configuration, clock_, diagnostics, registry_.get());
  if (room_ == nullptr) return false;
  if (configuration.rules_file && !open_rules(*configuration.rules_file, diagnostics)) return false;

  const std::lock_guard turn{turn_};
  if (configuration.rules_file) {
    configuration = read_configuration(text_, options_.file, diagnostics, &rules_);
    if (!diagnostics.ok()) return false;
  }
  const ServeConfig& serve = configuration.serve;
  log_ = serve.access_log;
  drain_ = serve.drain;
  auto inherited = net::take_inherited_listeners();
  if (!inherited) {
    diagnostics.error(std::move(inherited.error()));
    return false;
  }
  if (!open_workers(serve, count, *inherited, diagnostics)) return false;
  facts_->begin(configuration.rules.rules.size(), clock_.now());
  if (!open_admin(serve, *inherited, diagnostics)) return false;
  for (const net::InheritedListener& unused : *inherited) {
    options_.say(fmt::format("the inherited socket {} is not used: no listener is there",
                             described(unused)));
  }
  in_force_ = configuration;
  began_with_ = std::move(configuration);
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

bool Server::open_rules(const RulesFileConfig& config, config::Diagnostics& diagnostics) {
  feed_ = std::make_unique<RuleFeed>(
      config, RuleFeed::Parts{.clock = clock_,
                              .accept = [this](const auto& fetched) { return take_rules(fetched); },
                              .say = who_hears().say});
  Parsed<void> started = feed_->start();
  if (!started) diagnostics.error(std::move(started.error()));
  return started.has_value();
}

// One shard for each worker, and one more for all that is not counted by them. The series in that
// one are told by different threads, each of them by one.
void Server::open_metrics(unsigned workers) {
  registry_ = std::make_unique<metrics::Registry>(workers + 1);
  frontend::declare_server_metrics(*registry_);
  metrics::collect_process(*registry_);
  metrics::show_build(*registry_, {.version = options_.version, .revision = options_.revision});
  meters_ = std::make_unique<const frontend::RequestMeters>(*registry_, "gateway");
  facts_ = std::make_unique<ServerFacts>(
      ServerFacts::Build{.version = options_.version, .file = options_.file}, *registry_, workers);
}

bool Server::open_workers(const ServeConfig& serve, unsigned count,
                          std::vector<net::InheritedListener>& inherited,
                          config::Diagnostics& diagnostics) {
  const ServerWorker::Serving serving{.options = metered(serve.gateway, *registry_),
                                      .tls = load_tls(serve, diagnostics)};
  if (!diagnostics.ok()) return false;
  auto opened = open_listeners(serve.listen.gateway, std::move(inherited), count);
  if (!opened) {
    diagnostics.error(std::move(opened.error()));
    return false;
  }
  inherited = std::move(opened->left);
  const auto log = open_access_log(serve.access_log);
  if (!log) {
    diagnostics.error(of_access_log(log.error()));
    return false;
  }
  for (unsigned i = 0; i < count; ++i) {
    auto loop = net::EventLoop::create(clock_);
    if (!loop) {
      diagnostics.error(std::move(loop.error()));
      return false;
    }
    workers_.push_back(std::make_unique<ServerWorker>(ServerWorker::Parts{.loop = *std::move(loop),
                                                                          .resolver = *resolver_,
                                                                          .room = *room_,
                                                                          .meters = *meters_,
                                                                          .who = who_hears(),
                                                                          .workers = count,
                                                                          .shard = i},
                                                      *log, serving));
    for (OpenListener& open : opened->of_worker[i]) {
      const std::string endpoint = open.listener.endpoint().text();
      if (workers_.back()->listen(std::move(open))) continue;
      Diagnostic cannot{.message = fmt::format("cannot watch {}", endpoint), .remedy = {}};
      diagnostics.error(std::move(cannot));
      return false;
    }
  }
  for (std::string& endpoint : opened->endpoints) {
    facts_->listeners.push_back({.name = "gateway", .endpoint = std::move(endpoint)});
  }
  return true;
}

// From a worker's thread to ours.
RequestObserver::Operator Server::who_hears() {
  const auto say = [this](std::string line) {
    loop_->post([this, line = std::move(line)] { options_.say(line); });
  };
  const auto warn = [this](std::string line) {
    loop_->post([this, line = std::move(line)] {
      if (warned_.insert(line).second) options_.say(line);
    });
  };
  return {.say = say, .warn = warn};
}

bool Server::open_admin(const ServeConfig& serve, std::vector<net::InheritedListener>& inherited,
                        config::Diagnostics& diagnostics) {
  auto listeners = open_admin_listeners(serve, inherited);
  if (!listeners) diagnostics.error(std::move(listeners.error()));
  if (!listeners || listeners->empty()) return listeners.has_value();
  admin_needs_token_ = std::ranges::any_of(*listeners, [](const net::Listener& listener) {
    return !is_on_this_machine(listener.endpoint());
  });
  auto guard = load_guard(serve.admin, diagnostics);
  if (guard == nullptr) return false;
  auto overview = std::make_unique<Overview>(Overview::Parts{.facts = *facts_,
                                                             .room = *room_,
                                                             .registry = *registry_,
                                                             .workers = workers_,
                                                             .feed = feed_.get(),
                                                             .clock = clock_},
                                             workers_.size());
  auto opened =
      AdminListener::open(*std::move(listeners), std::move(guard), std::move(overview), clock_);
  if (!opened) {
    diagnostics.error(std::move(opened.error()));
    return false;
  }
  admin_ = *std::move(opened);
  for (const std::string& endpoint : admin_->endpoints()) {
    facts_->listeners.push_back({.name = "admin", .endpoint = endpoint});
  }
  return true;
}

// ---- life -------------------------------------------------------------------------------------

void Server::run() {
  for (const auto& worker : workers_) worker->start();
  if (admin_ != nullptr) admin_->start();
  reload_if_changed();
  facts_->enter(Phase::serving);
  manager_.ready("serving");
  if (manager_.watchdog()) feed_watchdog();
  loop_->run();
  end();
}

// The file itself, and what it names.
void Server::watch(rules::WatchedPaths paths) {
  paths.files.push_back(std::filesystem::absolute(options_.file).string());
  if (paths == watched_) return;
  auto started = rules::FileWatch::start(paths, {}, [this] { loop_->post([this] { reload(); }); });
  if (!started) {
    return options_.say("changes of files are not noticed: " + started.error().text());
  }
  watch_ = *std::move(started);
  watched_ = std::move(paths);
}

// Twice as often as it has to be.
void Server::feed_watchdog() {
  manager_.alive();
  loop_->set(watchdog_, *manager_.watchdog() / 2);
}

void Server::on_signal(int number) {
  if (number == SIGHUP) return reload();
  if (number == SIGUSR1) return reopen_log();
  if (number != SIGTERM && number != SIGINT) return;
  if (facts_->phase() == Phase::draining) return loop_->stop();
  begin_to_drain();
}

// Whoever turns logs over has given the old file another name.
void Server::reopen_log() {
  if (log_.file.empty() || log_.file == "-") return;
  const auto log = open_access_log(log_);
  if (!log) return options_.say("kept the old access log: " + log.error().text());
  for (const auto& worker : workers_) worker->log_to(*log);
  options_.say("opened the access log anew");
}

// Between the reading of the file and the watch over it.
void Server::reload_if_changed() {
  const Parsed<std::string> text =
      read_trusted_file(options_.file, config::DocumentOptions{}.bytes_max);
  if (!text || *text != options_.text) reload();
}

void Server::reload() {
  if (facts_->phase() == Phase::draining) return;
  manager_.reloading(clock_.now().mono);
  if (feed_ != nullptr) feed_->read_now();
  config::Diagnostics diagnostics;
  if (take_over(diagnostics)) return manager_.ready("serving");
  facts_->kept_the_old(clock_.now().wall());
  options_.say("kept the old configuration:\n" + diagnostics.text());
  manager_.ready("serving; the new file is wrong");
}

// False, with what is wrong reported: everything stays as it was.
bool Server::take_over(config::Diagnostics& diagnostics) {
  Parsed<std::string> text = read_trusted_file(options_.file, config::DocumentOptions{}.bytes_max);
  if (!text) {
    diagnostics.error(std::move(text.error()));
    return false;
  }
  const std::lock_guard turn{turn_};
  const Configuration configuration =
      read_configuration(*text, options_.file, diagnostics, feed_ != nullptr ? &rules_ : nullptr);
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
  if (!diagnostics.ok() || !room_->replace(configuration, diagnostics)) return false;
  named_ = std::move(named);
  text_ = *std::move(text);
  in_force_ = configuration;
  put_in_force(configuration.serve, files);
  const std::size_t rules = configuration.rules.rules.size();
  facts_->took_over(rules, clock_.now().wall());
  options_.say(fmt::format("took over the new configuration: {} rules", rules));
  const std::vector<std::string_view> later = need_restart(configuration);
  if (!later.empty()) {
    options_.say(
        fmt::format("needs a restart, and is as before until then: {}", fmt::join(later, ", ")));
  }
  return true;
}

// What suffices for other addresses may be too little for those that are open.
bool Server::has_same_admin(const ServeConfig& serve) const {
  return serve.listen.admin == began_with_.serve.listen.admin;
}

Server::Named Server::load(const ServeConfig& serve, config::Diagnostics& diagnostics) const {
  Named files{.tls = load_tls(serve, diagnostics),
              .guard = load_guard(serve.admin, diagnostics),
              .log = std::nullopt};
  if (serve.access_log != log_) {
    auto opened = open_access_log(serve.access_log);
    if (opened) {
      files.log = *std::move(opened);
    } else {
      diagnostics.error(of_access_log(opened.error()));
    }
  }
  if (has_same_admin(serve) && admin_needs_token_ && serve.admin.token_file.empty()) {
    diagnostics.error({.message = "the admin listener can be reached from elsewhere, and would ask "
                                  "for no token",
                       .remedy = "write admin: {token_file: FILE}"});
  }
  return files;
}

void Server::put_in_force(const ServeConfig& serve, const Named& files) {
  const ServerWorker::Serving serving{.options = metered(serve.gateway, *registry_),
                                      .tls = files.tls};
  for (const auto& worker : workers_) {
    worker->use(serving);
    if (files.log) worker->log_to(*files.log);
  }
  if (admin_ != nullptr && has_same_admin(serve)) admin_->use(files.guard);
  log_ = serve.access_log;
  drain_ = serve.drain;
}

std::vector<std::string_view> Server::need_restart(const Configuration& configuration) const {
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

// Rules alone, by the thread of the feed; at the start by ours.
Parsed<void> Server::take_rules(const rules::Fetched& fetched) {
  const std::lock_guard turn{turn_};
  RulesText rules{.text = fetched.text, .file = fetched.where};
  config::Diagnostics diagnostics;
  Configuration next = in_force_;
  next.rules = rules::parse_rules_text(rules.text, rules.file, diagnostics);
  if (!diagnostics.ok()) return tl::unexpected(all_of(diagnostics));
  const bool has_other_routes =
      !workers_.empty() && !reads_paths_alike(next.rules, in_force_.rules);
  if (has_other_routes) next = read_configuration(text_, options_.file, diagnostics, &rules);
  if (!diagnostics.ok() || !room_->replace_rules(next, diagnostics)) {
    return tl::unexpected(all_of(diagnostics));
  }
  if (has_other_routes) {
    const auto options = metered(next.serve.gateway, *registry_);
    for (const auto& worker : workers_) worker->use(options);
  }
  const std::size_t count = next.rules.rules.size();
  in_force_ = std::move(next);
  rules_ = std::move(rules);
  facts_->took_rules(count);
  if (workers_.empty()) return {};  // the first ones go without saying
  who_hears().say(fmt::format("took over the rules in {}: {} rules", rules_.file, count));
  return {};
}

// ---- the end ----------------------------------------------------------------------------------

// Those who watch hear of it at once; those who only send requests are served until they do.
void Server::begin_to_drain() {
  facts_->enter(Phase::draining);
  manager_.stopping("draining");
  if (drain_.delay <= Nanos{0}) return drain();
  options_.say(
      fmt::format("draining in {}; a second signal ends at once", format_duration(drain_.delay)));
  loop_->set(drain_soon_, drain_.delay);
}

void Server::drain() {
  options_.say("draining; a second signal ends at once");
  for (const auto& worker : workers_) worker->drain();
  drain_until_ = loop_->now().mono + drain_.within;
  loop_->set(drained_, kLookEvery);
}

void Server::look() {
  const bool drained =
      std::ranges::all_of(workers_, [](const auto& worker) { return worker->is_drained(); });
  if (drained || loop_->now().mono >= drain_until_) return loop_->stop();
  for (const auto& worker : workers_) worker->drain();  // they may have ended meanwhile
  loop_->set(drained_, kLookEvery);
}

}  // namespace sluice::app
