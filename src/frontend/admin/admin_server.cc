#include "frontend/admin/admin_server.h"

#include "frontend/admin/admin_connection.h"

#include <utility>

namespace sluice::admin {

AdminServer::AdminServer(net::EventLoop& loop, const Routes& routes, const AdminOptions& options)
    : loop_(loop), routes_(routes), options_(options), lingering_(loop) {}

AdminServer::~AdminServer() {
  while (AdminConnection* const connection = answering_.front()) destroy(*connection);
  while (AdminConnection* const connection = waiting_.front()) destroy(*connection);
}

// Those who ask and do not read must not keep probes out. They go before those who are waiting,
// among whom is the probe that came a moment ago; but not at once, since a long answer takes a few
// turns even to a client that reads.
void AdminServer::make_room() noexcept {
  if (count_ < options_.connections_max) return;
  AdminConnection* const slowest = answering_.front();
  const bool is_stuck =
      slowest != nullptr && loop_.now().mono - slowest->last_progress() >= options_.stuck_after;
  destroy(is_stuck || waiting_.empty() ? *slowest : *waiting_.front());
}

void AdminServer::accept(net::Accepted accepted) {
  make_room();
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
