// The HTTP server for operators: access control, and the headers of every response for browsers.
//
// Made for few clients, and built to stay usable under attack (http_server.h). The server closes a
// connection after a 4xx response: each guess of a path or token costs a connection. One thread;
// everything that it refers to outlives it.
#pragma once

#include "frontend/admin/guard.h"
#include "frontend/admin/routes.h"
#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/http/server/http_server.h"

#include <cstddef>
#include <memory>
#include <utility>

namespace sluice::admin {

// Only the limits apply; the admin server sets the form of responses itself.
using AdminOptions = net::HttpServerOptions;

class AdminServer {
 public:
  AdminServer(net::EventLoop& loop, const Routes& routes, AdminOptions options = {});
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;
  ~AdminServer() = default;

  // For requests from now on.
  void use(std::shared_ptr<const Guard> guard) noexcept { guard_ = std::move(guard); }

  void accept(net::Accepted accepted) { server_.accept(std::move(accepted)); }
  [[nodiscard]] std::size_t connections() const noexcept { return server_.connections(); }

 private:
  [[nodiscard]] AdminOptions completed(AdminOptions options) const;

  const Routes& routes_;
  std::shared_ptr<const Guard> guard_ = std::make_shared<const Guard>();
  net::HttpServer server_;  // calls the others
};

}  // namespace sluice::admin
