#include "frontend/gateway/gateway.h"

#include <algorithm>
#include <random>
#include <utility>

namespace sluice::gateway {

Gateway::Gateway(const Parts& parts, std::shared_ptr<const GatewayOptions> options)
    : loop_(parts.loop),
      resolver_(parts.resolver),
      worker_(parts.worker),
      observer_(parts.observer),
      routing_(std::make_shared<Routing>(loop_, resolver_, std::move(options))),
      lingering_(loop_),
      next_id_((std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}()) {}

Gateway::~Gateway() {
  while (Connection* const connection = connections_.front()) destroy(*connection);
}

void Gateway::use(std::shared_ptr<const GatewayOptions> options) {
  routing_ = std::make_shared<Routing>(loop_, resolver_, std::move(options));
}

void Gateway::accept(net::Accepted accepted) {
  const GatewayOptions& options = *routing_->options;
  std::uint32_t& of_address = by_address_[accepted.peer.address];
  const bool too_many =
      connection_count_ >= options.connections_max ||
      (options.connections_per_address > 0 && of_address >= options.connections_per_address);
  if (too_many || draining_) {
    if (of_address == 0) by_address_.erase(accepted.peer.address);
    ++counts_.turned_away;
    return;
  }
  ++of_address;
  ++counts_.connections;
  ++connection_count_;
  auto connection = std::make_unique<Connection>(*this, accepted.peer);
  Connection& opened = *connection.release();
  connections_.push_back(opened);
  if (!opened.open(std::move(accepted.descriptor))) destroy(opened);
}

void Gateway::destroy(Connection& connection) noexcept {
  const auto found = by_address_.find(connection.peer().address);
  if (found != by_address_.end() && --found->second == 0) by_address_.erase(found);
  --connection_count_;
  connection.unlink();
  delete &connection;
}

void Gateway::drain() {
  if (std::exchange(draining_, true)) return;
  net::List<Connection> all;
  all.take(connections_);
  while (Connection* const connection = all.pop_front()) {
    connections_.push_back(*connection);
    connection->drain();
  }
}

std::unique_ptr<Exchange> Gateway::take_exchange() {
  if (exchanges_.empty()) {
    const net::HeadLimits& head = routing_->options->head;
    return std::make_unique<Exchange>(head, std::min(head.headers, net::kHeadersMax));
  }
  std::unique_ptr<Exchange> exchange = std::move(exchanges_.back());
  exchanges_.pop_back();
  return exchange;
}

void Gateway::give_back(std::unique_ptr<Exchange> exchange) {
  buffers_.give_back(std::move(exchange->server_buffer));
  buffers_.give_back(std::move(exchange->request_buffer));
  buffers_.give_back(std::move(exchange->answer_buffer));
  exchange->routing = nullptr;
  retries_left_ = std::min(retries_left_ + 1, kRetriesKept * 5);
  if (exchanges_.size() < kExchangesKept) exchanges_.push_back(std::move(exchange));
}

// At most one request in five is asked twice, lest a server in trouble be asked to death.
bool Gateway::may_retry() noexcept {
  if (retries_left_ < 5) return false;
  retries_left_ -= 5;
  ++counts_.retries;
  return true;
}

}  // namespace sluice::gateway
