#include "app/server/server.h"

#include "app/config/frontends.h"
#include "app/server/start_check.h"
#include "base/descriptor_limit.h"
#include "base/duration.h"
#include "base/mapped_files.h"
#include "frontend/metrics/request_meters.h"
#include "frontend/metrics/server_metrics.h"
#include "metrics/process_metrics.h"
#include "net/listen.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace sluice::app {
namespace {

using frontend::Placement;

constexpr Nanos kLookEvery{std::chrono::milliseconds{20}};

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
      ejections_(options_.say) {
  for (const frontend::FrontendKind* kind : frontends()) frontends_.push_back(kind->open());
}

Server::~Server() { end(); }

// Threads that wait for others stop first: the feed waits for the control thread, operators' front
// ends for the workers, and workers for the resolver, which posts to their loops. So these outlive
// it.
void Server::end() {
  if (control_ != nullptr) control_->stop();
  threads_.clear();
  for (const auto& worker : workers_) worker->stop();
  for (const auto& worker : workers_) worker->join();
  resolver_ = nullptr;
  workers_.clear();
}

bool Server::open_all(config::Diagnostics& diagnostics) {
  raise_descriptor_limit();
  if (!open_loop(diagnostics)) return false;
  control_ = std::make_unique<Control>(
      Control::Parts{.file = options_.file,
                     .text = options_.text,
                     .say = options_.say,
                     .say_later = who_hears().say,
                     .clock = clock_,
                     .loop = *loop_,
                     .manager = manager_,
                     .frontends = frontends_,
                     .wake = [this] { wake_all(); },
                     .upstreams_replaced = [this](auto names) { ejections_.forget(names); }});
  if (!control_->read(diagnostics)) return false;
  const ServeConfig& found = control_->configuration().serve;
  if (!listens(found, Placement::workers)) {
    diagnostics.error(nothing_to_listen_on(found));
    return false;
  }
  for (const auto& config : found.frontends) {
    if (auto warning = config->start_warning()) diagnostics.warning(*std::move(warning));
  }
  const unsigned count = workers_of(found);
  open_metrics(count);
  explain_lost_files();
  if (!control_->open(*registry_, *facts_, diagnostics)) return false;
  if (!open_sockets(count, diagnostics) || !open_workers(count, diagnostics)) return false;
  facts_->begin(control_->configuration().rules.rules.size(), clock_.now());
  return open_threads(diagnostics);
}

// A log file no longer in use is closed soon, however few requests come.
void Server::wake_all() {
  for (const auto& worker : workers_) worker->wake();
  for (const auto& thread : threads_) thread->wake();
}

bool Server::open_loop(config::Diagnostics& diagnostics) {
  manager_ = net::ServiceManager::from_environment();
  auto loop = net::EventLoop::create(clock_);
  if (!loop) {
    diagnostics.error(std::move(loop.error()));
    return false;
  }
  loop_ = *std::move(loop);
  // Before threads start: they inherit the blocked signals.
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

// One shard for each worker, and one more for everything else. Different threads write the series
// in that one, but each series has one thread.
void Server::open_metrics(unsigned workers) {
  registry_ = std::make_unique<metrics::Registry>(workers + 1);
  frontend::declare_server_metrics(*registry_);
  metrics::collect_process(*registry_);
  metrics::show_build(*registry_, {.version = options_.version, .revision = options_.revision});
  facts_ = std::make_unique<ServerFacts>(
      ServerFacts::Build{.version = options_.version, .file = options_.file}, *registry_, workers);
}

// For every front end: one socket of each address for each of its threads. Inherited sockets
// without a use are reported.
bool Server::open_sockets(unsigned workers, config::Diagnostics& diagnostics) {
  const ServeConfig& serve = control_->configuration().serve;
  auto inherited = net::take_inherited_listeners();
  if (!inherited) {
    diagnostics.error(std::move(inherited.error()));
    return false;
  }
  for (std::size_t i = 0; i < frontends_.size(); ++i) {
    const frontend::FrontendKind& kind = *frontends()[i];
    const frontend::FrontendConfig& config = *serve.frontends[i];
    const unsigned threads = kind.placement == Placement::workers ? workers : 1;
    auto opened = open_listeners(kind.name(), config.listen, *std::move(inherited), threads);
    Parsed<void> accepted;
    if (opened && !opened->sockets.empty()) {
      accepted = frontends_[i]->opened(config, opened->sockets);
    }
    if (!opened || !accepted) {
      serve.files.error(std::move(opened ? accepted.error() : opened.error()), diagnostics);
      return false;
    }
    inherited = std::move(opened->left);
    for (const frontend::OpenedSocket& socket : opened->sockets) {
      facts_->listeners.push_back(
          {.name = std::string{kind.name()}, .endpoint = socket.endpoint.text()});
    }
    sockets_.push_back(std::move(opened->of_thread));
  }
  for (const net::InheritedListener& unused : *inherited) {
    options_.say(LogLevel::warning,
                 fmt::format("the inherited socket {} is not used: no listener is there",
                             described(unused)));
  }
  return true;
}

// Front ends without a socket are off, and have no part in a worker.
bool Server::open_workers(unsigned count, config::Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < frontends_.size(); ++i) {
    const frontend::FrontendKind& kind = *frontends()[i];
    if (kind.placement != Placement::workers || sockets_[i].front().empty()) continue;
    served_.push_back(
        {.kind = kind,
         .frontend = *frontends_[i],
         .number = i,
         .meters = std::make_unique<const frontend::RequestMeters>(*registry_, kind.name())});
  }
  for (unsigned i = 0; i < count; ++i) {
    auto loop = net::EventLoop::create(clock_);
    if (!loop) {
      diagnostics.error(std::move(loop.error()));
      return false;
    }
    ServerWorker& worker = *workers_.emplace_back(
        std::make_unique<ServerWorker>(ServerWorker::Parts{.loop = *std::move(loop),
                                                           .resolver = *resolver_,
                                                           .state = control_->state(),
                                                           .published = control_->published(),
                                                           .frontends = served_,
                                                           .who = who_hears(),
                                                           .workers = count,
                                                           .shard = i}));
    for (std::size_t one = 0; one < served_.size(); ++one) {
      for (OpenListener& open : sockets_[served_[one].number][i]) {
        const std::string endpoint = open.listener.endpoint().text();
        if (worker.listen(one, std::move(open))) continue;
        Diagnostic cannot{.message = fmt::format("cannot watch {}", endpoint), .remedy = {}};
        diagnostics.error(std::move(cannot));
        return false;
      }
    }
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

bool Server::open_threads(config::Diagnostics& diagnostics) {
  overview_ = std::make_unique<Overview>(Overview::Parts{.facts = *facts_,
                                                         .state = control_->state(),
                                                         .registry = *registry_,
                                                         .workers = workers_,
                                                         .feed = control_->feed(),
                                                         .clock = clock_},
                                         workers_.size());
  for (std::size_t i = 0; i < frontends_.size(); ++i) {
    const bool is_own = frontends()[i]->placement == Placement::own_thread;
    if (!is_own || sockets_[i].front().empty()) continue;
    auto opened = FrontendThread::open({.frontend = *frontends_[i],
                                        .number = i,
                                        .published = control_->published(),
                                        .view = *overview_,
                                        .clock = clock_},
                                       std::move(sockets_[i].front()));
    if (!opened) {
      diagnostics.error(std::move(opened.error()));
      return false;
    }
    threads_.push_back(*std::move(opened));
  }
  sockets_.clear();
  return true;
}

// ---- life -------------------------------------------------------------------------------------

void Server::run() {
  for (const auto& worker : workers_) worker->start();
  for (const auto& thread : threads_) thread->start();
  control_->reload_if_changed();
  facts_->enter(Phase::serving);
  manager_.ready("serving");
  if (manager_.watchdog()) feed_watchdog();
  loop_->run();
  end();
}

// Four times as often as required, while every worker makes progress: connections of a hanging
// worker would wait for ever, and only a restart helps.
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

// Health checks see it at once; clients are served until they react.
void Server::begin_to_drain() {
  facts_->enter(Phase::draining);
  manager_.stopping("draining");
  const Nanos delay = control_->published().get()->drain.delay;
  if (delay <= Nanos{0}) return drain();
  options_.say(LogLevel::info, fmt::format("draining in {}; a second signal stops at once",
                                           format_duration(delay)));
  loop_->set(drain_soon_, delay);
}

void Server::drain() {
  options_.say(LogLevel::info, "draining; a second signal stops at once");
  for (const auto& worker : workers_) worker->drain();
  drain_until_ = loop_->now().mono + control_->published().get()->drain.timeout;
  loop_->set(drained_, kLookEvery);
}

void Server::look() {
  const bool drained =
      std::ranges::all_of(workers_, [](const auto& worker) { return worker->is_drained(); });
  if (drained || loop_->now().mono >= drain_until_) return loop_->stop();
  for (const auto& worker : workers_) worker->drain();  // they may be done meanwhile
  loop_->set(drained_, kLookEvery);
}

}  // namespace sluice::app
