// HTTP/1.1 for operators: connections with their limits, and nothing of what is asked.
//
// Meant for few clients, and built to stay usable when others try to spoil that: heads, bodies,
// waiting, the number of connections and what one of them may ask are bounded. A newcomer is always
// let in: when there are too many, one that does not take its answer gives way, or else the one
// that has asked nothing for longest. One thread; everything that it refers to outlives it.
#pragma once

#include "frontend/admin/routes.h"
#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/http/fault.h"
#include "net/intrusive_list.h"
#include "net/lingering.h"
#include <sluice/time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace sluice::admin {

class AdminConnection;

struct AdminOptions {
  net::HeadLimits head{.start_line_bytes = 8192, .header_bytes = 16384, .headers = 64};
  std::size_t body_bytes_max = std::size_t{1} << 20U;
  Nanos request_within{std::chrono::seconds{10}};  // all of it, from the connection on
  Nanos idle_for{std::chrono::seconds{75}};        // longer than most scrapers pause
  Nanos written_within{std::chrono::seconds{10}};  // a client has to take some bytes
  Nanos stuck_after{std::chrono::seconds{1}};      // without taking any: the first to give way
  std::size_t connections_max = 64;
  std::uint32_t requests_max = 1000;  // on one connection, which is then closed
};

class AdminServer {
 public:
  AdminServer(net::EventLoop& loop, const Routes& routes, const AdminOptions& options = {});
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;
  ~AdminServer();

  // For requests from now on.
  void use(std::shared_ptr<const Guard> guard) noexcept { guard_ = std::move(guard); }

  void accept(net::Accepted accepted);
  [[nodiscard]] std::size_t connections() const noexcept { return count_; }

 private:
  friend class AdminConnection;
  void make_room() noexcept;
  void destroy(AdminConnection& connection) noexcept;

  net::EventLoop& loop_;
  const Routes& routes_;
  const AdminOptions options_;
  std::shared_ptr<const Guard> guard_ = std::make_shared<const Guard>();
  net::LingeringCloser lingering_;
  net::List<AdminConnection> answering_;  // longest without progress first; owned, as the others
  net::List<AdminConnection> waiting_;    // for all of a request; the longest first
  std::size_t count_ = 0;
};

}  // namespace sluice::admin
