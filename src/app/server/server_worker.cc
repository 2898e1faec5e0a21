#include "app/server/server_worker.h"

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
                              .ejected_by = server->is_ejected(now) ? 1U : 0U,
                              .addresses = server->addresses().all().size(),
                              .addresses_ejected = server->addresses().ejected(now),
                              .in_use = server->in_use(),
                              .idle = server->idle(),
                              .failures = server->failures()});
  }
  return status;
}

}  // namespace

// The version is read before the snapshot: what is published in between is taken with the next
// turn.
ServerWorker::ServerWorker(Parts parts)
    : loop_(std::move(parts.loop)),
      published_(parts.published),
      version_(published_.version()),
      snapshot_(published_.get()),
      engine_(parts.state, parts.workers),
      observer_(parts.meters, parts.shard, std::move(parts.who)),
      gateway_({.loop = *loop_,
                .resolver = parts.resolver,
                .worker = engine_.decider(),
                .observer = observer_,
                .connection_counts = parts.connection_counts},
               snapshot_->gateway),
      end_of_turn_(net::Callback<>::to<&ServerWorker::on_end_of_turn>(*this)),
      later_(net::Callback<>::to<&ServerWorker::on_later>(*this)) {
  take_over();
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
  acceptors_.push_back(std::make_unique<ListenerAcceptor>(std::move(open), gateway_));
  return acceptors_.back()->watch(*loop_);
}

void ServerWorker::start() {
  thread_ = std::jthread{[this] { loop_->run(); }};
}

void ServerWorker::on_turn(Now /*now*/) {
  if (version_ != published_.version()) [[unlikely]] {
    version_ = published_.version();
    snapshot_ = published_.get();
    take_over();
  }
  loop_->run_soon(end_of_turn_);
}

// All of it at once, so that no request meets the rules of one configuration and the routes of
// another.
void ServerWorker::take_over() {
  engine_.use(snapshot_->engine);
  gateway_.use(snapshot_->gateway);
  gateway_.use_tls(snapshot_->tls);
  observer_.use(*snapshot_);
}

// Not at the beginning of the next one, which may be a long time off.
void ServerWorker::on_end_of_turn() {
  if (!observer_.flush()) loop_->set(later_, kLogAgain);
  connections_.store(gateway_.connections(), std::memory_order_relaxed);
}

// ---- from other threads -----------------------------------------------------------------------

void ServerWorker::wake() {
  loop_->post([] {});
}

void ServerWorker::report(std::shared_ptr<WorkerPoll> poll, std::size_t number) {
  loop_->post([this, poll = std::move(poll), number] { poll->answer(number, report()); });
}

std::uint64_t ServerWorker::connections_rejected() const noexcept {
  std::uint64_t count = gateway_.counts().connections_rejected;
  for (const auto& acceptor : acceptors_) count += acceptor->counts().refused;
  return count;
}

WorkerReport ServerWorker::report() const {
  const frontend::AccessLog* const log = observer_.log();
  WorkerReport report{.connections = gateway_.connections(),
                      .connections_rejected = connections_rejected(),
                      .evicted = gateway_.counts().evicted,
                      .spares = gateway_.spares(),
                      .in_flight = gateway_.in_flight(),
                      .queued = gateway_.queued(),
                      .headers_dropped = gateway_.counts().headers_dropped,
                      .log_written = log != nullptr ? log->written() : 0,
                      .log_suppressed = log != nullptr ? log->suppressed() : 0,
                      .log_dropped = log != nullptr ? log->dropped() : 0,
                      .blocks = engine_.counters().blocks,
                      .blocks_dropped = engine_.counters().blocks_dropped,
                      .block_names_displaced = engine_.counters().block_names_displaced,
                      .charges_unrefundable = engine_.counters().charges_unrefundable,
                      .auth_failures_forgotten = engine_.counters().failures_forgotten,
                      .dynamic_limits_skipped = engine_.counters().dynamic_limits_skipped,
                      .shadow_checks_skipped = engine_.counters().shadow_checks_skipped,
                      .store = engine_.store_counts(),
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
    for (const auto& acceptor : acceptors_) acceptor->shut();
    acceptors_.clear();
    gateway_.drain();
    connections_.store(gateway_.connections(), std::memory_order_relaxed);
    is_draining_.store(true, std::memory_order_release);
  });
}

}  // namespace sluice::app
