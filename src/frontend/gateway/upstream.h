// Servers behind the gateway, and the connections to them.
//
// Each worker has its own: connections never move between threads. The pool of a server follows
// demand: idle and used connections together are at most the recent peak of used ones, which is
// never more than the worker has clients. A server is ejected after `max_consecutive_failures`, for
// `ejection_time`. If all are ejected, the one ejected first is tried. Each address of a name is
// ejected by itself, and the server when all of them are. One thread.
#pragma once

#include "frontend/gateway/gateway_options.h"
#include "frontend/gateway/local_exhaustion.h"
#include "frontend/gateway/pool_demand.h"
#include "frontend/gateway/upstream_addresses.h"
#include "net/event_loop.h"
#include "net/intrusive_list.h"
#include "net/io_result.h"
#include "net/lookup.h"
#include "net/resolver.h"
#include "net/stream.h"
#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::gateway {

class UpstreamServer;

// Calls its user when something becomes possible on the connection.
class UpstreamConnection : public net::ListHook {
 public:
  UpstreamConnection(UpstreamServer& server, UpstreamAddresses::Shared address) noexcept;
  UpstreamConnection(const UpstreamConnection&) = delete;
  UpstreamConnection& operator=(const UpstreamConnection&) = delete;
  ~UpstreamConnection() = default;

  [[nodiscard]] net::Stream& stream() noexcept { return stream_; }
  [[nodiscard]] UpstreamServer& server() noexcept { return server_; }
  [[nodiscard]] const UpstreamAddresses::Shared& address() const noexcept { return address_; }
  [[nodiscard]] bool is_reused() const noexcept { return used_before_; }
  void set_user(net::Callback<> on_ready) noexcept { on_ready_ = on_ready; }

 private:
  friend class UpstreamServer;
  void on_stream();
  void on_idle_too_long();

  UpstreamServer& server_;
  const UpstreamAddresses::Shared address_;
  net::Stream stream_;
  net::Timer idle_;
  net::Callback<> on_ready_;  // none: it is idle
  bool used_before_ = false;
};

class UpstreamServer {
 public:
  // Looks up names now, and again from time to time.
  UpstreamServer(net::EventLoop& loop, net::Resolver& resolver, const UpstreamOptions& options,
                 const ServerOptions& server);
  UpstreamServer(const UpstreamServer&) = delete;
  UpstreamServer& operator=(const UpstreamServer&) = delete;
  ~UpstreamServer();

  struct Wanted {
    bool fresh = false;                       // never used before
    const UpstreamAddress* except = nullptr;  // avoided unless it is the only one
  };
  struct Taken {
    std::unique_ptr<UpstreamConnection> connection;
    UpstreamAddresses::Shared address;  // without a connection: the address that failed
    net::IoFailure why{};
    LocalExhaustion lack = LocalExhaustion::nothing;  // if any: no failure of the server
  };
  // An idle connection, or a new connection in progress. Null if it cannot even begin, or the
  // server's address is unknown.
  [[nodiscard]] Taken take(const Wanted& wanted, MonoTime now);
  // Takes a connection with nothing in flight; kept if the recent demand was as high.
  void give_back(std::unique_ptr<UpstreamConnection> connection);
  // Closes the connection.
  void drop(std::unique_ptr<UpstreamConnection> connection) noexcept;
  // Closes at most so many idle connections, longest idle first; returns how many.
  std::size_t close_idle(std::size_t most) noexcept;

  // Reports a failed request at one of its addresses. True: the address is ejected now, and was not
  // before.
  bool failed(UpstreamAddress& address, MonoTime now) noexcept;
  [[nodiscard]] bool is_ejected(MonoTime now) const noexcept { return addresses_.are_ejected(now); }
  [[nodiscard]] const UpstreamAddresses& addresses() const noexcept { return addresses_; }
  // The first lookup of its name is in flight: soon it has an address or an error.
  [[nodiscard]] bool is_sought() const noexcept {
    return found_ == nullptr && lookup_.is_waiting();
  }
  // The address, if the name alone does not identify it.
  [[nodiscard]] std::optional<IpAddress> address_told(
      const UpstreamAddress& address) const noexcept;
  // Why its address is unknown; empty: it is known.
  [[nodiscard]] const std::string& lost() const noexcept { return lost_; }

  [[nodiscard]] const ServerOptions& options() const noexcept { return server_; }
  [[nodiscard]] const UpstreamOptions& group() const noexcept { return options_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }  // host:port
  [[nodiscard]] std::uint32_t in_use() const noexcept { return in_use_; }
  [[nodiscard]] std::size_t idle() const noexcept { return idle_count_; }  // connections
  [[nodiscard]] std::uint64_t failures() const noexcept { return failures_; }

 private:
  friend class UpstreamConnection;
  friend class UpstreamGroup;
  [[nodiscard]] std::unique_ptr<UpstreamConnection> take_idle(MonoTime now) noexcept;
  [[nodiscard]] bool is_usable(const UpstreamConnection& idle, MonoTime now) const noexcept;
  [[nodiscard]] std::size_t idle_max() const noexcept;
  void forget(UpstreamConnection& idle) noexcept;
  void look_up();
  void on_found(const net::Resolution& found);

  // The resolver caches and refreshes by itself, so a lookup costs little.
  static constexpr Nanos kAskEvery{std::chrono::seconds{1}};
  // The period of recent demand, unless connections are closed sooner anyway.
  static constexpr Nanos kDemandPeriod{std::chrono::seconds{60}};
  // When demand has fallen, each returned connection closes at most so many: a pool of thousands
  // must not be closed in one turn of the loop.
  static constexpr std::size_t kClosedAtOnce = 2;

  net::EventLoop& loop_;
  net::Resolver& resolver_;
  const UpstreamOptions& options_;
  const ServerOptions& server_;
  std::string name_;
  net::Lookup lookup_;
  net::Timer next_lookup_;
  std::shared_ptr<const net::Addresses> found_;  // the last; null: none yet, or it has no name
  UpstreamAddresses addresses_;
  std::string lost_;

  net::List<UpstreamConnection> idle_;  // owned; the most recently used is the first
  std::size_t idle_count_ = 0;
  std::uint32_t in_use_ = 0;
  PoolDemand demand_;
  std::int64_t turn_ = 0;   // of the weighted round robin
  std::uint64_t seed_ = 0;  // for choosing by hash
  std::uint64_t failures_ = 0;
};

class UpstreamGroup {
 public:
  UpstreamGroup(net::EventLoop& loop, net::Resolver& resolver,
                std::shared_ptr<const UpstreamOptions> options);

  [[nodiscard]] bool serves(const UpstreamOptions& options) const {
    return is_same_upstream(*options_, options);
  }

  // Where a request was tried before.
  struct Tried {
    UpstreamServer* server = nullptr;  // null: nowhere
    const UpstreamAddress* address = nullptr;
  };
  // The server for the next request; `client` is a hash of the client. Not `except`, unless it is
  // the only one, or has another address and all others are ejected.
  [[nodiscard]] UpstreamServer& choose(std::uint64_t client, const Tried& except,
                                       MonoTime now) noexcept;
  // Whether there is another server or address to try.
  [[nodiscard]] bool has_another(const Tried& except, MonoTime now) const noexcept;
  // At most one request in five is retried, lest retries overload failing servers: each forwarded
  // request earns a fifth of a retry. Each group counts its own requests only.
  void passed_on() noexcept;
  [[nodiscard]] bool may_retry() noexcept;
  [[nodiscard]] const UpstreamOptions& options() const noexcept { return *options_; }
  [[nodiscard]] const std::vector<std::unique_ptr<UpstreamServer>>& servers() const noexcept {
    return servers_;
  }

 private:
  [[nodiscard]] UpstreamServer* next_in_round(const UpstreamServer* except, MonoTime now) noexcept;
  [[nodiscard]] UpstreamServer* least_in_use(const UpstreamServer* except, MonoTime now) noexcept;
  [[nodiscard]] UpstreamServer* by_hash(std::uint64_t client, const UpstreamServer* except,
                                        MonoTime now) noexcept;

  static constexpr std::uint32_t kRequestsPerRetry = 5;
  static constexpr std::uint32_t kEarnedMax = 20 * kRequestsPerRetry;

  std::shared_ptr<const UpstreamOptions> options_;  // outlives the servers
  std::vector<std::unique_ptr<UpstreamServer>> servers_;
  std::uint32_t earned_ = kEarnedMax;
};

}  // namespace sluice::gateway
