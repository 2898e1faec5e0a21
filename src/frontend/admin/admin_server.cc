#include "frontend/admin/admin_server.h"

namespace sluice::admin {

AdminServer::AdminServer(net::EventLoop& loop, const Routes& routes, AdminOptions options)
    : routes_(routes), server_(loop, routes.table(), completed(std::move(options))) {}

AdminOptions AdminServer::completed(AdminOptions options) const {
  options.close_after_client_error = true;
  // No response is for caches, other sites, or content sniffing.
  options.headers = {{"cache-control", "no-store"},
                     {"x-content-type-options", "nosniff"},
                     {"x-frame-options", "DENY"},
                     {"content-security-policy", "default-src 'none'; frame-ancestors 'none'"},
                     {"referrer-policy", "no-referrer"}};
  options.filter = [this](const Request& request, const net::RouteMatch& match) {
    return routes_.refuse(request, match, *guard_);
  };
  options.error_response = problem;
  return options;
}

}  // namespace sluice::admin
