#include "app/server/server.h"

#include "app/server/listeners.h"
#include "app/server/overview.h"
#include "app/server/request_observer.h"
#include "app/server/start_check.h"
#include "base/descriptor_limit.h"
#include "base/duration.h"
#include "base/mapped_files.h"
#include "frontend/metrics/server_metrics.h"
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

// Threads that ask others go first: the feed asks the control thread, the admin listener the
// workers, and workers the resolver, which answers on their loops. So these are there until it has
// gone.
void Server::end() {
  if (control_ != nullptr) control_->stop();
  admin_ = nullptr;
  for (const auto& worker : workers_) worker->stop();
  for (const auto& worker : workers_) worker->join();
  resolver_ = nullptr;
  workers_.clear();
}

bool Server::open_all(config::Diagnostics& diagnostics) {
  raise_descriptor_limit();
  if (!open_loop(diagnostics)) return false;
  control_ = std::make_unique<Control>(Control::Parts{
      .file = options_.file,
      .text = options_.text,
      .say = options_.say,
      .say_later = who_hears().say,
      .clock = clock_,
      .loop = *loop_,
      .manager = manager_,
      .wake = [this] { wake_all(); },
      .upstreams_replaced = [this](auto before,
                                   auto now) { ejections_.forget_replaced(before, now); }});
  if (!control_->read(diagnostics)) return false;
  const ServeConfig& found = control_->configuration().serve;
  if (found.listen.gateway.empty()) {
    diagnostics.error(nothing_to_listen_on(found.listen));
    return false;
  }
  if (auto few = why_fewer_connections(found)) diagnostics.warning(*std::move(few));
  const unsigned count = workers_of(found);
  open_metrics(count);
  explain_lost_files();
  if (!control_->open(*registry_, *facts_, diagnostics)) return false;

  const ServeConfig& serve = control_->configuration().serve;
  auto inherited = net::take_inherited_listeners();
  if (!inherited) {
    diagnostics.error(std::move(inherited.error()));
    return false;
  }
  if (!open_workers(serve, count, *inherited, diagnostics)) return false;
  facts_->begin(control_->configuration().rules.rules.size(), clock_.now());
  if (!open_admin(serve, *inherited, diagnostics)) return false;
  for (const net::InheritedListener& unused : *inherited) {
    options_.say(LogLevel::warning,
                 fmt::format("the inherited socket {} is not used: no listener is there",
                             described(unused)));
  }
  return true;
}

// A file that is no longer logged to is closed soon, however few requests come.
void Server::wake_all() {
  for (const auto& worker : workers_) worker->wake();
  if (admin_ != nullptr) admin_->wake();
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
  auto opened = open_listeners(serve.listen.gateway, std::move(inherited), count);
  if (!opened) {
    serve.files.error(std::move(opened.error()), diagnostics);
    return false;
  }
  inherited = std::move(opened->left);
  for (unsigned i = 0; i < count; ++i) {
    auto loop = net::EventLoop::create(clock_);
    if (!loop) {
      diagnostics.error(std::move(loop.error()));
      return false;
    }
    workers_.push_back(
        std::make_unique<ServerWorker>(ServerWorker::Parts{.loop = *std::move(loop),
                                                           .resolver = *resolver_,
                                                           .connection_counts = connection_counts_,
                                                           .state = control_->state(),
                                                           .published = control_->published(),
                                                           .meters = *meters_,
                                                           .who = who_hears(),
                                                           .workers = count,
                                                           .shard = i}));
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
  const auto say = [this](LogLevel level, std::string line) {
    loop_->post([this, level, line = std::move(line)] { options_.say(level, line); });
  };
  const auto warn = [this](std::string line) {
    loop_->post([this, line = std::move(line)] {
      if (warned_.insert(line).second) options_.say(LogLevel::warning, line);
    });
  };
  const auto ejected = [this](Ejection one) {
    loop_->post([this, one = std::move(one)] { ejections_.ejected(one, clock_.now().mono); });
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
  const bool is_open_to_others = std::ranges::any_of(
      *listeners, [](const net::Listener& one) { return !is_on_this_machine(one.endpoint()); });
  if (is_open_to_others) control_->require_token();
  auto overview = std::make_unique<Overview>(Overview::Parts{.facts = *facts_,
                                                             .state = control_->state(),
                                                             .registry = *registry_,
                                                             .workers = workers_,
                                                             .feed = control_->feed(),
                                                             .clock = clock_},
                                             workers_.size());
  auto opened = AdminListener::open(*std::move(listeners), control_->published(),
                                    std::move(overview), clock_);
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
  control_->reload_if_changed();
  facts_->enter(Phase::serving);
  manager_.ready("serving");
  if (manager_.watchdog()) feed_watchdog();
  loop_->run();
  end();
}

// Four times as often as it has to be, as long as every worker goes on: one that hangs keeps its
// connections waiting for ever, and only a restart helps.
void Server::feed_watchdog() {
  bool all_go_on = true;
  for (const auto& worker : workers_) all_go_on &= worker->has_turned();
  if (all_go_on) manager_.alive();
  loop_->set(watchdog_, *manager_.watchdog() / 4);
}

void Server::on_signal(int number) {
  if (number == SIGHUP) return control_->reload();
  if (number == SIGUSR1) return control_->reopen_log();
  if (number != SIGTERM && number != SIGINT) return;
  if (facts_->phase() == Phase::draining) return loop_->stop();
  begin_to_drain();
}

// ---- the end ----------------------------------------------------------------------------------

// Those who watch hear of it at once; those who only send requests are served until they do.
void Server::begin_to_drain() {
  facts_->enter(Phase::draining);
  manager_.stopping("draining");
  const Nanos delay = control_->published().get()->drain.delay;
  if (delay <= Nanos{0}) return drain();
  options_.say(LogLevel::info,
               fmt::format("draining in {}; a second signal ends at once", format_duration(delay)));
  loop_->set(drain_soon_, delay);
}

void Server::drain() {
  options_.say(LogLevel::info, "draining; a second signal ends at once");
  for (const auto& worker : workers_) worker->drain();
  drain_until_ = loop_->now().mono + control_->published().get()->drain.timeout;
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
