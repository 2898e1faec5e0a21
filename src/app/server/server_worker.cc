#include "app/server/server_worker.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice::app {
namespace {

// How soon to retry log lines that a pipe had no room for.
constexpr Nanos kLogAgain{std::chrono::milliseconds{50}};

}  // namespace

// Reads the version before the snapshot: a snapshot published in between is taken with the next
// turn.
ServerWorker::ServerWorker(Parts parts)
    : loop_(std::move(parts.loop)),
      published_(parts.published),
      version_(published_.version()),
      snapshot_(published_.get()),
      engine_(parts.state, parts.workers),
      log_(parts.shard),
      end_of_turn_(net::Callback<>::to<&ServerWorker::on_end_of_turn>(*this)),
      later_(net::Callback<>::to<&ServerWorker::on_later>(*this)),
      store_timer_(net::Callback<>::to<&ServerWorker::on_later>(*this)) {
  for (const ServedFrontend& served : parts.frontends) {
    Part& part = *parts_.emplace_back(std::make_unique<Part>(served, log_, parts.who, parts.shard));
    part.worker = served.frontend.on_worker({.loop = *loop_,
                                             .resolver = parts.resolver,
                                             .decider = engine_.decider(),
                                             .envoy = engine_.envoy(),
                                             .observer = part.observer},
                                            snapshot_->frontends[part.number]);
  }
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

Result<void> ServerWorker::listen(std::size_t frontend, OpenListener open) {
  Part& part = *parts_[frontend];
  part.acceptors.push_back(std::make_unique<ListenerAcceptor>(std::move(open), *part.worker));
  return part.acceptors.back()->watch(*loop_);
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
  for (const auto& part : parts_) part->worker->use(snapshot_->frontends[part->number]);
  log_.use(*snapshot_);
}

// Not at the beginning of the next turn, which may be a long time off.
void ServerWorker::on_end_of_turn() {
  advance_store();
  if (!log_.flush()) loop_->set(later_, kLogAgain);
  if (is_draining_.load(std::memory_order_relaxed)) [[unlikely]]
    count_connections();
}

// What this turn asked of a shared store goes out together.
void ServerWorker::advance_store() noexcept {
  engine_.advance(loop_->now());
  const MonoTime due = engine_.wake_at();
  if (due == store_due_) return;
  store_due_ = due;
  store_timer_.cancel();
  if (due != MonoTime::max()) {
    loop_->set(store_timer_, std::max(due - loop_->now().mono, Nanos{0}));
  }
}

void ServerWorker::count_connections() noexcept {
  std::size_t count = 0;
  for (const auto& part : parts_) count += part->worker->connections();
  connections_.store(count, std::memory_order_relaxed);
}

// ---- from other threads -----------------------------------------------------------------------

void ServerWorker::wake() {
  loop_->post([] {});
}

void ServerWorker::report(std::shared_ptr<WorkerPoll> poll, std::size_t number) {
  loop_->post([this, poll = std::move(poll), number] { poll->answer(number, report()); });
}

WorkerReport ServerWorker::report() const {
  const frontend::AccessLog* const log = log_.log();
  WorkerReport report{.frontends = {},
                      .log_written = log != nullptr ? log->written() : 0,
                      .log_suppressed = log != nullptr ? log->suppressed() : 0,
                      .log_dropped = log != nullptr ? log->dropped() : 0,
                      .blocks = engine_.counters().blocks,
                      .blocks_dropped = engine_.counters().blocks_dropped,
                      .block_rejections_lost = engine_.counters().block_rejections_lost,
                      .block_names_displaced = engine_.counters().block_names_displaced,
                      .auth_failures_forgotten = engine_.counters().failures_forgotten,
                      .dynamic_limits_skipped = engine_.counters().dynamic_limits_skipped,
                      .shadow_checks_skipped = engine_.counters().shadow_checks_skipped,
                      .store = engine_.store_counts()};
  for (const auto& part : parts_) {
    auto& [name, of_frontend] =
        report.frontends.emplace_back(WorkerReport::OfFrontend{part->name, part->worker->report()});
    of_frontend.connections_rejected += part->rejected_before;
    for (const auto& acceptor : part->acceptors) {
      of_frontend.connections_rejected += acceptor->counts().refused;
    }
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
    for (const auto& part : parts_) {
      for (const auto& acceptor : part->acceptors) {
        acceptor->shut();
        part->rejected_before += acceptor->counts().refused;
      }
      part->acceptors.clear();
      part->worker->drain();
    }
    count_connections();
    is_draining_.store(true, std::memory_order_release);
  });
}

}  // namespace sluice::app
