#include "frontend/admin/admin_server.h"

#include "frontend/admin/admin_connection.h"

#include <utility>

namespace sluice::admin {

AdminServer::AdminServer(net::EventLoop& loop, const Routes& routes, const AdminOptions& options)
    : loop_(loop), routes_(routes), options_(options), lingering_(loop) {}

AdminServer::~AdminServer() {
  while (AdminConnection* const connection = busy_.front()) destroy(*connection);
  while (AdminConnection* const connection = waiting_.front()) destroy(*connection);
}

bool AdminServer::make_room() {
  if (count_ < options_.connections_max) return true;
  if (waiting_.empty()) return false;
  destroy(*waiting_.front());
  return true;
}

void AdminServer::accept(net::Accepted accepted) {
  if (!make_room()) return;  // the descriptor closes itself
  auto made = std::make_unique<AdminConnection>(*this, accepted.peer);
  AdminConnection& connection = *made.release();
  ++count_;
  waiting_.push_back(connection);
  if (!connection.open(std::move(accepted.descriptor))) destroy(connection);
}

void AdminServer::destroy(AdminConnection& connection) noexcept {
  --count_;
  delete &connection;
}

}  // namespace sluice::admin
