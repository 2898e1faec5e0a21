#include "app/server_worker.h"

#include <chrono>
#include <utility>

namespace sluice::app {
namespace {

// How soon lines are written that found no room in a pipe.
constexpr Nanos kLogAgain{std::chrono::milliseconds{50}};

admin::UpstreamStatus status_of(const gateway::UpstreamGroup& group, MonoTime now) {
  admin::UpstreamStatus status{.name = group.options().name, .servers = {}};
  for (const auto& server : group.servers()) {
    status.servers.push_back({.address = server->name(),
                              .left_alone_by = server->is_left_alone(now) ? 1U : 0U,
                              .addresses = server->addresses().all().size(),
                              .addresses_left_alone = server->addresses().left_alone(now),
                              .in_use = server->in_use(),
                              .idle = server->idle(),
                              .failures = server->failures()});
  }
  return status;
}

}  // namespace

std::shared_ptr<const gateway::GatewayOptions> metered(gateway::GatewayOptions options,
                                                       metrics::Registry& registry) {
  for (gateway::UpstreamOptions& upstream : options.upstreams) {
    upstream.meters = std::make_shared<const frontend::UpstreamMeters>(registry, upstream.name);
  }
  return std::make_shared<const gateway::GatewayOptions>(std::move(options));
}

ServerWorker::ServerWorker(Parts parts, AccessLogSink log, Serving serving)
    : loop_(std::move(parts.loop)),
      room_(parts.room, parts.workers),
      observer_(std::move(log), parts.meters, parts.shard, std::move(parts.who)),
      gateway_({.loop = *loop_,
                .resolver = parts.resolver,
                .worker = room_.worker(),
                .observer = observer_},
               std::move(serving.options)),
      end_of_turn_(net::Callback<>::to<&ServerWorker::on_end_of_turn>(*this)),
      later_(net::Callback<>::to<&ServerWorker::on_later>(*this)) {
  gateway_.use_tls(std::move(serving.tls));
  observer_.use(room_.content());
  loop_->set_turn_hook(net::Callback<Now>::to<&ServerWorker::on_turn>(*this));
}

ServerWorker::~ServerWorker() {
  stop();
  join();
}

void ServerWorker::join() {
  if (thread_.joinable()) thread_.join();
}

Result<void> ServerWorker::listen(OpenListener open) {
  doors_.push_back(std::make_unique<Door>(std::move(open), gateway_));
  return doors_.back()->watch(*loop_);
}

void ServerWorker::start() {
  thread_ = std::jthread{[this] { loop_->run(); }};
}

void ServerWorker::on_turn(Now /*now*/) {
  room_.refresh();
  observer_.use(room_.content());
  loop_->run_soon(end_of_turn_);
}

// Not at the beginning of the next one, which may be a long time off.
void ServerWorker::on_end_of_turn() {
  if (!observer_.flush()) loop_->set(later_, kLogAgain);
  connections_.store(gateway_.connections(), std::memory_order_relaxed);
}

// ---- from other threads -----------------------------------------------------------------------

void ServerWorker::use(Serving serving) {
  loop_->post([this, serving = std::move(serving)] {
    gateway_.use(serving.options);
    gateway_.use_tls(serving.tls);
  });
}

void ServerWorker::use(std::shared_ptr<const gateway::GatewayOptions> options) {
  loop_->post([this, options = std::move(options)] { gateway_.use(options); });
}

void ServerWorker::log_to(AccessLogSink log) {
  loop_->post([this, log = std::move(log)] { observer_.log_to(log); });
}

void ServerWorker::report(std::shared_ptr<Gathering> gathering, std::size_t number) {
  loop_->post(
      [this, gathering = std::move(gathering), number] { gathering->answer(number, report()); });
}

std::uint64_t ServerWorker::turned_away() const noexcept {
  std::uint64_t count = gateway_.counts().turned_away;
  for (const auto& door : doors_) count += door->counts().refused;
  return count;
}

WorkerReport ServerWorker::report() const {
  const frontend::AccessLog* const log = observer_.log();
  WorkerReport report{.connections = gateway_.connections(),
                      .turned_away = turned_away(),
                      .evicted = gateway_.counts().evicted,
                      .spares = gateway_.spares(),
                      .in_flight = gateway_.in_flight(),
                      .held = gateway_.held(),
                      .log_written = log != nullptr ? log->written() : 0,
                      .log_suppressed = log != nullptr ? log->suppressed() : 0,
                      .log_dropped = log != nullptr ? log->dropped() : 0,
                      .blocks = room_.counters().blocks,
                      .amounts_left_out = room_.counters().amounts_left_out,
                      .shadows_left_out = room_.counters().shadows_left_out,
                      .store = room_.store_counts(),
                      .upstreams = {}};
  for (const auto& group : gateway_.routing()->groups) {
    report.upstreams.push_back(status_of(*group, loop_->now().mono));
  }
  return report;
}

bool ServerWorker::has_turned() {
  if (!has_turned_.exchange(false)) return false;
  loop_->post([this] { has_turned_.store(true); });
  return true;
}

void ServerWorker::drain() {
  loop_->post([this] {
    for (const auto& door : doors_) door->shut();
    doors_.clear();
    gateway_.drain();
    connections_.store(gateway_.connections(), std::memory_order_relaxed);
    is_draining_.store(true, std::memory_order_release);
  });
}

}  // namespace sluice::app
