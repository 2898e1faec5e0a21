// One worker of the server: a thread, a loop, its own sockets of every port and its own part of
// every front end that serves requests.
//
// Made, listening and started by the control thread. At the beginning of each turn of its loop it
// takes the newest snapshot, if there is one: all of a turn is served by the same.
#pragma once

#include "app/server/listeners.h"
#include "app/server/request_log.h"
#include "app/server/request_observer.h"
#include "app/server/snapshot.h"
#include "app/server/worker_report.h"
#include "base/published.h"
#include "embed/engine_state.h"
#include "frontend/frontend.h"
#include "frontend/metrics/request_meters.h"
#include "metrics/registry.h"
#include "net/event_loop.h"
#include "net/resolver.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

namespace sluice::app {

// A front end that serves requests; its sockets are open.
struct ServedFrontend {
  const frontend::FrontendKind& kind;
  frontend::Frontend& frontend;
  std::size_t number;  // of it, in the snapshot
  std::unique_ptr<const frontend::RequestMeters> meters;
};

class ServerWorker {
 public:
  struct Parts {
    std::unique_ptr<net::EventLoop> loop;
    net::Resolver& resolver;
    embed::EngineState& state;
    const Published<ServerSnapshot>& published;  // something is
    std::span<const ServedFrontend> frontends;   // they outlive it
    RequestObserver::Operator who;
    unsigned workers;  // how many there are beside each other
    metrics::Shard shard;
  };
  explicit ServerWorker(Parts parts);
  ServerWorker(const ServerWorker&) = delete;
  ServerWorker& operator=(const ServerWorker&) = delete;
  ~ServerWorker();

  // For one of the front ends, by its place in Parts::frontends.
  [[nodiscard]] Result<void> listen(std::size_t frontend, OpenListener open);
  void start();
  void stop() { loop_->stop(); }
  // Once it was stopped.
  void join();

  // ---- from any thread --------------------------------------------------------------------------

  // For a turn, in which it takes what was published.
  void wake();
  void report(std::shared_ptr<WorkerPoll> poll, std::size_t number);
  // Whether its loop has turned since this was last asked. One thread asks.
  [[nodiscard]] bool has_turned();
  void drain();
  // Nothing is left, and nothing will come.
  [[nodiscard]] bool is_drained() const noexcept {
    return is_draining_.load(std::memory_order_acquire) &&
           connections_.load(std::memory_order_relaxed) == 0;
  }

 private:
  // One front end's part of this worker.
  struct Part {
    Part(const ServedFrontend& served, RequestLog& log, const RequestObserver::Operator& who,
         metrics::Shard shard)
        : name(served.kind.name()),
          number(served.number),
          observer(log, *served.meters, shard, who) {}

    std::string_view name;
    std::size_t number;  // in the snapshot
    RequestObserver observer;
    std::unique_ptr<frontend::FrontendWorker> worker;
    std::vector<std::unique_ptr<ListenerAcceptor>> acceptors;
  };

  void on_turn(Now now);
  void take_over();
  void on_end_of_turn();
  void on_later() noexcept {}  // the turn that it wakes for does the work
  void count_connections() noexcept;
  [[nodiscard]] WorkerReport report() const;

  std::unique_ptr<net::EventLoop> loop_;
  const Published<ServerSnapshot>& published_;
  std::uint64_t version_;  // of the snapshot, and
  std::shared_ptr<const ServerSnapshot> snapshot_;
  embed::WorkerEngine engine_;
  RequestLog log_;
  std::vector<std::unique_ptr<Part>> parts_;
  net::Task end_of_turn_;
  net::Timer later_;                         // for lines of the log that nobody reads yet
  std::atomic<std::size_t> connections_{0};  // of all front ends, once it drains
  std::atomic<bool> is_draining_{false};
  std::atomic<bool> has_turned_{true};
  std::jthread thread_;  // last: it uses all the others
};

}  // namespace sluice::app
