// A reverse proxy that enforces limits: one worker's part of it.
//
// One thread. Everything that it refers to outlives it.
#pragma once

#include "base/hash.h"
#include "base/random.h"
#include "engine/decider.h"
#include "frontend/gateway/buffer_pool.h"
#include "frontend/gateway/connection.h"
#include "frontend/gateway/connection_counts.h"
#include "frontend/gateway/memory_return.h"
#include "frontend/gateway/request_ids.h"
#include "frontend/gateway/routing.h"
#include "frontend/observer.h"
#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/http/http_date.h"
#include "net/intrusive_list.h"
#include "net/lingering.h"
#include "net/resolver.h"
#include "net/tls_server.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::gateway {

using frontend::Observer;
using frontend::ServerPlace;

struct GatewayCounts {
  std::uint64_t connections = 0;
  std::uint64_t connections_rejected = 0;  // over the maximum
  std::uint64_t evicted = 0;               // idle, to make room
  std::uint64_t requests = 0;
  std::uint64_t headers_dropped = 0;  // of forwarded requests
  std::uint64_t faults = 0;           // malformed requests
  std::uint64_t timeouts = 0;         // of clients
  std::uint64_t retries = 0;
};

class Gateway {
 public:
  struct Parts {
    net::EventLoop& loop;
    net::Resolver& resolver;
    engine::Decider& worker;
    Observer& observer;
    ConnectionCounts& connection_counts;  // shared by all workers
  };
  Gateway(const Parts& parts, std::shared_ptr<const GatewayOptions> options);
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();

  // Sets TLS for new connections; null: plain. If its client trust differs from before, connections
  // under TLS close after the response to their current request.
  void use_tls(std::shared_ptr<const net::TlsServer> tls);
  // For requests whose headers are complete from now on.
  void use(std::shared_ptr<const GatewayOptions> options);

  void accept(net::Accepted accepted, const Entrance& entrance);
  // Closes one idle connection to free a descriptor. Among the longest idle it takes one of the
  // address with the most connections, so such an address makes room first. False: none has been
  // idle for kIdleBeforeEviction.
  bool evict_idle();

  static constexpr std::uint64_t kTimedOneIn = 64;
  // A client between two requests is not idle. Closing its connection just as a request arrives
  // would lose that request.
  static constexpr Nanos kIdleBeforeEviction{std::chrono::seconds{1}};
  static constexpr Nanos kTrimEvery{std::chrono::seconds{5}};

  // Accepts no more connections. Open ones close after their next response, or soon if none is due.
  void drain();
  [[nodiscard]] bool is_draining() const noexcept { return draining_; }
  // Includes connections that only wait until the client has read the last response.
  [[nodiscard]] std::size_t connections() const noexcept {
    return connection_count_ + lingering_.size();
  }
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }  // requests
  [[nodiscard]] std::size_t queued() const noexcept { return queued_; }  // part of in_flight()
  [[nodiscard]] const GatewayCounts& counts() const noexcept { return counts_; }
  // Buffers and exchanges that requests have freed, kept for the next.
  [[nodiscard]] std::size_t spares() const noexcept { return buffers_.size() + exchanges_.size(); }
  [[nodiscard]] const std::shared_ptr<Routing>& routing() const noexcept { return routing_; }

 private:
  friend class Connection;
  [[nodiscard]] std::unique_ptr<Exchange> take_exchange();
  void give_back(std::unique_ptr<Exchange> exchange);
  void destroy(Connection& connection) noexcept;
  // Connections without a request in flight are in a list of their own, oldest first.
  void is_idle(Connection& connection) noexcept { idle_.push_back(connection); }
  void is_busy(Connection& connection) noexcept { busy_.push_back(connection); }
  void trim();
  // Adds a connection of this address; false if it already has max_connections_per_ip.
  [[nodiscard]] bool count(const IpAddress& address);
  // For Date; rewritten once a second.
  [[nodiscard]] std::string_view date() noexcept;

  // How many of the longest idle connections are compared.
  static constexpr int kEvictionCandidates = 64;

  net::EventLoop& loop_;
  net::Resolver& resolver_;
  engine::Decider& worker_;
  Observer& observer_;
  ConnectionCounts& connection_counts_;
  std::shared_ptr<Routing> routing_;
  std::shared_ptr<const net::TlsServer> tls_;
  net::TlsServer::ClientTrust client_trust_{};  // without TLS no certificate is trusted
  std::uint32_t trust_ = 0;                     // counts its changes
  net::LingeringCloser lingering_;
  BufferPool buffers_;
  SparePool<Exchange> exchanges_;
  net::Timer trim_;
  MemoryReturn memory_;
  net::List<Connection> busy_;  // owned
  net::List<Connection> idle_;  // owned; without a request in flight, longest idle first
  std::size_t connection_count_ = 0;
  bool draining_ = false;
  std::string_view name_;  // of this process among proxies
  std::string via_1_0_;    // the same with a message's version, for Via
  std::string via_1_1_;
  std::array<char, net::kHttpDateBytes> date_;
  std::int64_t date_second_ = -1;  // of date_, since 1970
  RequestIds ids_;
  std::size_t in_flight_ = 0;
  std::size_t queued_ = 0;
  Random random_;                 // for trace ids
  std::uint32_t generation_ = 0;  // of the options, whose limits exchanges are made for
  GatewayCounts counts_;
};

}  // namespace sluice::gateway
