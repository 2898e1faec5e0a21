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
#include "net/inherited.h"
#include "rules/source/file_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
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

}  // namespace

// ---- opening ----------------------------------------------------------------------------------

std::unique_ptr<Server> Server::open(const Configuration& configuration,
                                     const ServerOptions& options, const Clock& clock,
                                     config::Diagnostics& diagnostics) {
  std::unique_ptr<Server> server{new Server{options, clock}};
  return server->open_all(configuration, diagnostics) ? std::move(server) : nullptr;
}

Server::Server(ServerOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      drain_soon_(net::Callback<>::to<&Server::drain>(*this)),
      drained_(net::Callback<>::to<&Server::look>(*this)),
      watchdog_(net::Callback<>::to<&Server::feed_watchdog>(*this)) {}

Server::~Server() { end(); }

// Who asks others goes first: the admin listener asks workers, and workers ask the resolver, which
// answers on their loops. So these are there until it has gone.
void Server::end() {
  admin_ = nullptr;
  for (const auto& worker : workers_) worker->stop();
  for (const auto& worker : workers_) worker->join();
  resolver_ = nullptr;
  workers_.clear();
}

bool Server::open_all(const Configuration& configuration, config::Diagnostics& diagnostics) {
  const ServeConfig& serve = configuration.serve;
  if (serve.listen.gateway.empty()) {
    Diagnostic nothing{.message = "the file names nothing to listen on",
                       .remedy =
                           "write listen: {gateway: 127.0.0.1:8080}, upstreams and routes, as "
                           "`sluice init` does"};
    diagnostics.error(std::move(nothing));
    return false;
  }
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
  log_file_ = serve.access_log.file;
  drain_ = serve.drain;
  const unsigned count =
      serve.workers > 0 ? serve.workers : std::max(1U, std::thread::hardware_concurrency());
  open_metrics(count);
  room_ = EngineRoom::open(configuration, clock_, diagnostics, registry_.get());
  if (room_ == nullptr || !open_workers(serve, count, diagnostics)) return false;
  facts_->begin(configuration.rules.rules.size(), clock_.now());
  return open_admin(serve, diagnostics);
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
                          config::Diagnostics& diagnostics) {
  auto inherited = net::take_inherited_listeners();
  if (!inherited) {
    diagnostics.error(std::move(inherited.error()));
    return false;
  }
  const ServerWorker::Serving serving{.options = metered(serve.gateway, *registry_),
                                      .tls = load_tls(serve, diagnostics)};
  if (!diagnostics.ok()) return false;
  listening_ = serve.listen;
  auto opened = open_listeners(serve.listen.gateway, *std::move(inherited), count);
  if (!opened) {
    diagnostics.error(std::move(opened.error()));
    return false;
  }
  for (const std::string& unused : opened->unused) {
    options_.say("the inherited socket " + unused + " is not used: no listener is there");
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
                                                      serve.access_log, serving));
    if (!workers_.back()->can_log()) {
      Diagnostic cannot{.message = fmt::format("cannot write the access log {}: {}",
                                               serve.access_log.file, std::strerror(errno)),
                        .remedy = "name a file in a folder that exists and may be written"};
      diagnostics.error(std::move(cannot));
      return false;
    }
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

bool Server::open_admin(const ServeConfig& serve, config::Diagnostics& diagnostics) {
  if (serve.listen.admin.empty()) return true;
  auto guard = load_guard(serve.admin, diagnostics);
  if (guard == nullptr) return false;
  auto overview = std::make_unique<Overview>(Overview::Parts{.facts = *facts_,
                                                             .room = *room_,
                                                             .registry = *registry_,
                                                             .workers = workers_,
                                                             .clock = clock_},
                                             workers_.size());
  auto opened =
      AdminListener::open(serve.listen.admin, std::move(guard), std::move(overview), clock_);
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
  std::unique_ptr<rules::FileWatch> watch;
  if (!options_.file.empty()) {
    auto started = rules::FileWatch::start(std::filesystem::absolute(options_.file).string(), {},
                                           [this] { loop_->post([this] { reload(); }); });
    if (started) {
      watch = *std::move(started);
    } else {
      options_.say("changes of the file are not noticed: " + started.error().text());
    }
    reload_if_changed();
  }
  facts_->enter(Phase::serving);
  manager_.ready("serving");
  if (manager_.watchdog()) feed_watchdog();
  loop_->run();
  watch = nullptr;
  end();
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
  if (log_file_.empty()) return;
  for (const auto& worker : workers_) {
    FileDescriptor file = open_log(log_file_);
    if (!file) {
      return options_.say(fmt::format("kept the old access log: cannot open {}: {}", log_file_,
                                      std::strerror(errno)));
    }
    worker->log_to(std::move(file));
  }
  options_.say("opened the access log anew");
}

// Between the reading of the file and the watch over it.
void Server::reload_if_changed() {
  const std::string before = std::exchange(options_.text, {});
  const Parsed<std::string> text =
      read_trusted_file(options_.file, config::DocumentOptions{}.bytes_max);
  if (!text || *text != before) reload();
}

void Server::reload() {
  if (options_.file.empty() || facts_->phase() == Phase::draining) return;
  manager_.reloading(clock_.now().mono);
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
  const Configuration configuration = read_configuration(*text, options_.file, diagnostics);
  if (!diagnostics.ok()) return false;
  const ServeConfig& serve = configuration.serve;
  const auto tls = load_tls(serve, diagnostics);
  const auto guard = load_guard(serve.admin, diagnostics);
  if (!diagnostics.ok() || !room_->replace(configuration, diagnostics)) return false;
  const bool has_same_admin = serve.listen.admin == listening_.admin;
  if (serve.listen.gateway != listening_.gateway || !has_same_admin) {
    options_.say("listeners change with a restart only; those that are open stay");
  }
  const ServerWorker::Serving serving{.options = metered(serve.gateway, *registry_), .tls = tls};
  for (const auto& worker : workers_) worker->use(serving);
  // What suffices for other addresses may be too little for those that are open.
  if (admin_ != nullptr && has_same_admin) admin_->use(guard);
  drain_ = serve.drain;
  facts_->took_over(configuration.rules.rules.size(), clock_.now().wall());
  options_.say(
      fmt::format("took over the new configuration: {} rules", configuration.rules.rules.size()));
  return true;
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
