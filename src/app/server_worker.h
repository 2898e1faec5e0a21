// One worker of the server: a thread, a loop, its own sockets of every port and its own part of the
// gateway.
//
// Made, listening and started by the thread of the server. What may be called later says so; it
// takes effect between two turns of the loop.
#pragma once

#include "app/engine_room.h"
#include "app/listeners.h"
#include "app/request_observer.h"
#include "app/serve_configuration.h"
#include "app/worker_report.h"
#include "frontend/gateway/gateway.h"
#include "frontend/gateway/gateway_options.h"
#include "frontend/request_meters.h"
#include "metrics/registry.h"
#include "net/event_loop.h"
#include "net/resolver.h"
#include "net/tls_server.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sluice::app {

// Options for all workers, with requests to an upstream counted under its name.
[[nodiscard]] std::shared_ptr<const gateway::GatewayOptions> metered(
    gateway::GatewayOptions options, metrics::Registry& registry);

class ServerWorker {
 public:
  // What the gateway is to do; both immutable.
  struct Serving {
    std::shared_ptr<const gateway::GatewayOptions> options;
    std::shared_ptr<const net::TlsServer> tls;  // null: plain
  };
  struct Parts {
    std::unique_ptr<net::EventLoop> loop;
    net::Resolver& resolver;
    EngineRoom& room;
    const frontend::RequestMeters& meters;
    RequestObserver::Operator who;
    unsigned workers;  // how many there are beside each other
    metrics::Shard shard;
  };
  ServerWorker(Parts parts, AccessLogSink log, Serving serving);
  ServerWorker(const ServerWorker&) = delete;
  ServerWorker& operator=(const ServerWorker&) = delete;
  ~ServerWorker();

  [[nodiscard]] Result<void> listen(OpenListener open);
  void start();
  void stop() { loop_->stop(); }
  // Once it was stopped.
  void join();

  // ---- from any thread --------------------------------------------------------------------------

  void use(Serving serving);
  void use(std::shared_ptr<const gateway::GatewayOptions> options);
  // Lines of the access log go there from now on.
  void log_to(AccessLogSink log);
  void report(std::shared_ptr<Gathering> gathering, std::size_t number);
  // Whether its loop has turned since this was last asked. One thread asks.
  [[nodiscard]] bool has_turned();
  void drain();
  // Nothing is left, and nothing will come.
  [[nodiscard]] bool is_drained() const noexcept {
    return is_draining_.load(std::memory_order_acquire) &&
           connections_.load(std::memory_order_relaxed) == 0;
  }

 private:
  void on_turn(Now now);
  void on_end_of_turn();
  void on_later() noexcept {}  // the turn that it wakes for does the work
  [[nodiscard]] std::uint64_t turned_away() const noexcept;
  [[nodiscard]] WorkerReport report() const;

  std::unique_ptr<net::EventLoop> loop_;
  RoomWorker room_;
  RequestObserver observer_;
  gateway::Gateway gateway_;
  net::Task end_of_turn_;
  net::Timer later_;  // for lines of the log that nobody reads yet
  std::vector<std::unique_ptr<Door>> doors_;
  std::atomic<std::size_t> connections_{0};
  std::atomic<bool> is_draining_{false};
  std::atomic<bool> has_turned_{true};
  std::jthread thread_;  // last: it uses all the others
};

}  // namespace sluice::app
