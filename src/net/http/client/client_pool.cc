#include "net/http/client/client_pool.h"

#include "net/http/client/http_client.h"

#include <memory>
#include <utility>

namespace sluice::net {

ClientPool::ClientPool(HttpClient& client, HttpOrigin origin, std::string key)
    : client_(client),
      origin_(std::move(origin)),
      key_(std::move(key)),
      server_(origin_.url.server()) {}

ClientPool::~ClientPool() {
  while (HttpCall* const call = waiting_.front()) call->detach();
  for (List<ClientConnection>* const list : {&idle_, &busy_}) {
    while (ClientConnection* const connection = list->front()) destroy(*connection);
  }
}

const HttpClientOptions& ClientPool::options() const noexcept { return client_.options_; }
EventLoop& ClientPool::loop() const noexcept { return client_.loop_; }
Resolver& ClientPool::resolver() const noexcept { return client_.resolver_; }
void ClientPool::count_connection() noexcept { ++client_.connections_; }

bool ClientPool::add(HttpCall& call) {
  if (waiting_count_ >= options().waiting_max) return false;
  call.pool_ = this;
  waiting_.push_back(call);
  ++waiting_count_;
  pump();
  return true;
}

void ClientPool::pump() {
  while (HttpCall* const call = waiting_.front()) {
    ClientConnection* const connection = free_connection();
    if (connection == nullptr) return;
    static_cast<ListHook*>(call)->unlink();
    --waiting_count_;
    busy_.push_back(*connection);
    connection->start(*call);
  }
}

// The one that was used last: the others may become superfluous.
ClientConnection* ClientPool::free_connection() {
  while (ClientConnection* const idle = idle_.back()) {
    if (idle->is_usable()) return idle;
    destroy(*idle);
  }
  if (count_ >= options().connections_max) return nullptr;
  ++count_;
  return std::make_unique<ClientConnection>(*this).release();
}

void ClientPool::give_up(ClientConnection* connection) {
  if (connection == nullptr) {
    --waiting_count_;
  } else {
    connection->forget_call();
    destroy(*connection);
  }
  pump();
  end_if_empty();
}

void ClientPool::release(ClientConnection& connection, bool is_reusable) {
  if (is_reusable) {
    idle_.push_back(connection);
    connection.wait_idle(options().keepalive_timeout);
  } else {
    destroy(connection);
  }
  pump();
  end_if_empty();
}

void ClientPool::destroy(ClientConnection& connection) noexcept {
  --count_;
  delete &connection;
}

void ClientPool::end_if_empty() {
  if (count_ == 0 && waiting_.empty()) client_.pools_.erase(client_.pools_.find(key_));
}

}  // namespace sluice::net
