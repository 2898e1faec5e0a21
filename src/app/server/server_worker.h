// One worker of the server: a thread, a loop, its own sockets of every port and its own part of
// every front end that serves requests.
//
// The control thread makes it, makes it listen and starts it. At the beginning of each turn of its
// loop it takes the newest snapshot: one snapshot serves a whole turn.
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
  std::size_t number;  // in the snapshot
  std::unique_ptr<const frontend::RequestMeters> meters;
};

class ServerWorker {
 public:
  struct Parts {
    std::unique_ptr<net::EventLoop> loop;
    net::Resolver& resolver;
    embed::EngineState& state;
    const Published<ServerSnapshot>& published;  // not empty
    std::span<const ServedFrontend> frontends;   // they outlive it
    RequestObserver::Operator who;
    unsigned workers;  // their total number
    metrics::Shard shard;
  };
  explicit ServerWorker(Parts parts);
  ServerWorker(const ServerWorker&) = delete;
  ServerWorker& operator=(const ServerWorker&) = delete;
  ~ServerWorker();

  // For one of the front ends, by its index in Parts::frontends.
  [[nodiscard]] Result<void> listen(std::size_t frontend, OpenListener open);
  void start();
  void stop() { loop_->stop(); }
  // After stop().
  void join();

  // ---- from any thread --------------------------------------------------------------------------

  // Runs a turn, which takes the newest snapshot.
  void wake();
  void report(std::shared_ptr<WorkerPoll> poll, std::size_t number);
  // Whether its loop has turned since the last call. For one calling thread.
  [[nodiscard]] bool has_turned();
  void drain();
  // No connection is open, and none will come.
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
    std::uint64_t rejected_before = 0;  // connections, by acceptors that are gone
  };

  void on_turn(Now now);
  void take_over();
  void on_end_of_turn();
  void on_later() noexcept {}  // the turn that it causes does the work
  void advance_store() noexcept;
  void count_connections() noexcept;
  [[nodiscard]] WorkerReport report() const;

  std::unique_ptr<net::EventLoop> loop_;
  const Published<ServerSnapshot>& published_;
  std::uint64_t version_;  // of snapshot_
  std::shared_ptr<const ServerSnapshot> snapshot_;
  embed::WorkerEngine engine_;
  RequestLog log_;
  std::vector<std::unique_ptr<Part>> parts_;
  net::Task end_of_turn_;
  net::Timer later_;                         // to retry log lines that wait for a reader
  net::Timer store_timer_;                   // for requests that the store decides later
  MonoTime store_due_ = MonoTime::max();     // when that is set for
  std::atomic<std::size_t> connections_{0};  // of all front ends, once it drains
  std::atomic<bool> is_draining_{false};
  std::atomic<bool> has_turned_{true};
  std::jthread thread_;  // last: it uses all the others
};

}  // namespace sluice::app
