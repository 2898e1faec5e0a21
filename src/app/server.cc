#include "app/server.h"

#include "app/complaints.h"
#include "app/listeners.h"
#include "base/read_file.h"
#include "frontend/access_log.h"
#include "frontend/gateway/gateway.h"
#include "net/inherited.h"
#include "rules/source/file_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>

namespace sluice::app {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{16} << 20U;
constexpr Nanos kLookEvery{std::chrono::milliseconds{20}};

void report(Diagnostic& diagnostic, config::Diagnostics& diagnostics) {
  config::Mistake mistake;
  mistake.message = std::move(diagnostic.message);
  mistake.remedy = std::move(diagnostic.remedy);
  diagnostics.add(std::move(mistake));
}

// Writes lines of the access log when there are some, once per turn of the loop.
class Logging final : public gateway::Observer {
 public:
  Logging(const AccessLogConfig& config, std::function<void(std::string)> say)
      : is_on_(!config.file.empty()), complaints_(std::move(say)) {
    if (!is_on_) return;
    file_ = config.file == "-"
                ? FileDescriptor{::dup(STDOUT_FILENO)}
                : FileDescriptor{
                      ::open(config.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640)};
    log_.emplace(std::make_shared<const frontend::AccessFormat>(frontend::AccessFormat::Options{
                     .form = config.json ? frontend::LogForm::json : frontend::LogForm::text,
                     .headers = {},
                     .secrets = {}}),
                 frontend::AccessLog::Options{.refusals_per_second = config.refusals_per_second});
  }
  [[nodiscard]] bool works() const noexcept { return !is_on_ || static_cast<bool>(file_); }

  void ended(const frontend::AccessRecord& record, Now now) noexcept override {
    if (log_) log_->log(record, now.mono);
  }
  void server_failed(const gateway::ServerFailure& failure, Now now) noexcept override {
    complaints_.add(failure, now.mono);
  }
  void flush() noexcept {
    if (!log_ || log_->empty()) return;
    // A log that cannot be written must not stop the service.
    const std::string_view lines = log_->flush();
    (void)!::write(file_.get(), lines.data(), lines.size());
  }

 private:
  bool is_on_;
  FileDescriptor file_;
  std::optional<frontend::AccessLog> log_;
  Complaints complaints_;
};

}  // namespace

// ---- workers ----------------------------------------------------------------------------------

class Server::Worker {
 public:
  Worker(std::unique_ptr<net::EventLoop> loop, net::Resolver& resolver, EngineRoom& room,
         unsigned workers, const ServeConfig& serve, std::shared_ptr<const net::TlsServer> tls,
         std::function<void(std::string)> say)
      : loop_(std::move(loop)),
        room_(room, workers),
        observer_(serve.access_log, std::move(say)),
        gateway_(
            {.loop = *loop_, .resolver = resolver, .worker = room_.worker(), .observer = observer_},
            std::make_shared<const gateway::GatewayOptions>(serve.gateway)) {
    gateway_.use_tls(std::move(tls));
    loop_->set_turn_hook(net::Callback<Now>::to<&Worker::on_turn>(*this));
  }

  ~Worker() {
    loop_->stop();
    if (thread_.joinable()) thread_.join();
    observer_.flush();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] bool can_log() const noexcept { return observer_.works(); }

  [[nodiscard]] Result<void> listen(OpenListener open) {
    doors_.push_back(std::make_unique<Door>(std::move(open), gateway_));
    return doors_.back()->watch(*loop_);
  }

  void start() {
    thread_ = std::jthread{[this] { loop_->run(); }};
  }
  void stop() { loop_->stop(); }

  // From other threads.
  void use(std::shared_ptr<const gateway::GatewayOptions> options,
           std::shared_ptr<const net::TlsServer> tls) {
    loop_->post([this, options = std::move(options), tls = std::move(tls)] {
      gateway_.use(options);
      gateway_.use_tls(tls);
    });
  }
  void drain() {
    loop_->post([this] {
      for (const auto& door : doors_) door->shut();
      doors_.clear();
      gateway_.drain();
      connections_.store(gateway_.connections(), std::memory_order_relaxed);
      is_draining_.store(true, std::memory_order_release);
    });
  }
  // Nothing is left, and nothing will come.
  [[nodiscard]] bool is_drained() const noexcept {
    return is_draining_.load(std::memory_order_acquire) &&
           connections_.load(std::memory_order_relaxed) == 0;
  }

 private:
  void on_turn(Now /*now*/) {
    room_.refresh();
    observer_.flush();
    connections_.store(gateway_.connections(), std::memory_order_relaxed);
  }

  std::unique_ptr<net::EventLoop> loop_;
  RoomWorker room_;
  Logging observer_;
  gateway::Gateway gateway_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::atomic<std::size_t> connections_{0};
  std::atomic<bool> is_draining_{false};
  std::jthread thread_;  // last: it uses all the others
};

// ---- opening ----------------------------------------------------------------------------------

std::unique_ptr<Server> Server::open(const Configuration& configuration,
                                     const ServerOptions& options, const Clock& clock,
                                     config::Diagnostics& diagnostics) {
  std::unique_ptr<Server> server{new Server{options, clock}};
  return server->open_all(configuration, diagnostics) ? std::move(server) : nullptr;
}

Server::Server(const ServerOptions& options, const Clock& clock)
    : options_(options), clock_(clock), drained_(net::Callback<>::to<&Server::look>(*this)) {}

Server::~Server() {
  for (const auto& worker : workers_) worker->stop();
  workers_.clear();
}

bool Server::open_all(const Configuration& configuration, config::Diagnostics& diagnostics) {
  if (configuration.serve.listen.gateway.empty()) {
    Diagnostic nothing{.message = "the file names nothing to listen on",
                       .remedy = "write listen: {gateway: 127.0.0.1:8080}"};
    report(nothing, diagnostics);
    return false;
  }
  manager_ = net::ServiceManager::from_environment();
  auto loop = net::EventLoop::create(clock_);
  if (!loop) {
    report(loop.error(), diagnostics);
    return false;
  }
  loop_ = *std::move(loop);
  // Before there are threads: they inherit what is blocked.
  auto signals =
      net::SignalSource::create(*loop_, net::Callback<int>::to<&Server::on_signal>(*this));
  if (!signals) {
    report(signals.error(), diagnostics);
    return false;
  }
  signals_ = *std::move(signals);
  resolver_ = std::make_unique<net::Resolver>();
  room_ = EngineRoom::open(configuration, clock_, diagnostics);
  return room_ != nullptr && open_workers(configuration.serve, diagnostics);
}

bool Server::open_workers(const ServeConfig& serve, config::Diagnostics& diagnostics) {
  auto inherited = net::take_inherited_listeners();
  if (!inherited) {
    report(inherited.error(), diagnostics);
    return false;
  }
  std::shared_ptr<const net::TlsServer> tls;
  if (serve.tls) {
    auto loaded = net::TlsServer::load(serve.tls->options);
    if (!loaded) {
      report(loaded.error(), diagnostics);
      return false;
    }
    tls = *std::move(loaded);
  }
  const unsigned count =
      serve.workers > 0 ? serve.workers : std::max(1U, std::thread::hardware_concurrency());
  listening_ = serve.listen.gateway;
  auto opened = open_listeners(listening_, *std::move(inherited), count);
  if (!opened) {
    report(opened.error(), diagnostics);
    return false;
  }
  endpoints_ = std::move(opened->endpoints);
  for (const std::string& unused : opened->unused) {
    options_.say("the inherited socket " + unused + " is not used: no listener is there");
  }
  for (unsigned i = 0; i < count; ++i) {
    auto loop = net::EventLoop::create(clock_);
    if (!loop) {
      report(loop.error(), diagnostics);
      return false;
    }
    // From the worker's thread to ours.
    auto say = [this](std::string line) {
      loop_->post([this, line = std::move(line)] { options_.say(line); });
    };
    auto worker = std::make_unique<Worker>(*std::move(loop), *resolver_, *room_, count, serve, tls,
                                           std::move(say));
    if (!worker->can_log()) {
      Diagnostic cannot{.message = fmt::format("cannot write the access log {}: {}",
                                               serve.access_log.file, std::strerror(errno)),
                        .remedy = "name a file in a folder that exists and may be written"};
      report(cannot, diagnostics);
      return false;
    }
    for (OpenListener& open : opened->of_worker[i]) {
      const std::string endpoint = open.listener.endpoint().text();
      if (worker->listen(std::move(open))) continue;
      Diagnostic cannot{.message = fmt::format("cannot watch {}", endpoint), .remedy = {}};
      report(cannot, diagnostics);
      return false;
    }
    workers_.push_back(std::move(worker));
  }
  return true;
}

// ---- life -------------------------------------------------------------------------------------

void Server::run() {
  for (const auto& worker : workers_) worker->start();
  std::unique_ptr<rules::FileWatch> watch;
  if (!options_.file.empty()) {
    auto started = rules::FileWatch::start(std::filesystem::absolute(options_.file).string(), {},
                                           [this] { loop_->post([this] { reload(); }); });
    if (started) watch = *std::move(started);
    if (!started) options_.say("changes of the file are not noticed: " + started.error().text());
    reload_if_changed();
  }
  manager_.ready("serving");
  loop_->run();
  watch = nullptr;
  for (const auto& worker : workers_) worker->stop();
  workers_.clear();
}

void Server::on_signal(int number) {
  if (number == SIGHUP) return reload();
  if (number != SIGTERM && number != SIGINT) return;
  if (draining_) return loop_->stop();
  drain();
}

// Between the reading of the file and the watch over it.
void Server::reload_if_changed() {
  const std::string before = std::exchange(options_.text, {});
  const Parsed<std::string> text = read_file(options_.file, kFileBytesMax);
  if (!text || *text != before) reload();
}

void Server::reload() {
  if (options_.file.empty() || draining_) return;
  manager_.reloading(clock_.now().mono);
  const Parsed<std::string> text = read_file(options_.file, kFileBytesMax);
  config::Diagnostics diagnostics;
  if (!text) {
    options_.say("kept the old configuration: " + text.error().text());
    return manager_.ready("serving; the file cannot be read");
  }
  const Configuration configuration = read_configuration(*text, options_.file, diagnostics);
  std::shared_ptr<const net::TlsServer> tls;
  if (diagnostics.ok() && configuration.serve.tls) {
    auto loaded = net::TlsServer::load(configuration.serve.tls->options);
    if (loaded) tls = *std::move(loaded);
    if (!loaded) report(loaded.error(), diagnostics);
  }
  if (!diagnostics.ok() || !room_->replace(configuration, diagnostics)) {
    options_.say("kept the old configuration:\n" + diagnostics.text());
    return manager_.ready("serving; the new file is wrong");
  }
  if (configuration.serve.listen.gateway != listening_) {
    options_.say("listeners change with a restart only; those that are open stay");
  }
  const auto options = std::make_shared<const gateway::GatewayOptions>(configuration.serve.gateway);
  for (const auto& worker : workers_) worker->use(options, tls);
  options_.say(
      fmt::format("took over the new configuration: {} rules", configuration.rules.rules.size()));
  manager_.ready("serving");
}

void Server::drain() {
  draining_ = true;
  manager_.stopping("draining");
  options_.say("draining; a second signal ends at once");
  for (const auto& worker : workers_) worker->drain();
  drain_until_ = loop_->now().mono + options_.drain_within;
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
