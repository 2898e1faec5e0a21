#include "frontend/gateway/gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <utility>

namespace sluice::gateway {
namespace {

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32U | device();
}

// All workers have the same: a request that goes in circles may come back to any of them. Other
// processes have other names, since one Sluice may stand behind another.
const std::string& process_name() {
  static const std::string kName = fmt::format("sluice-{:08x}", random_seed() & 0xffffffffU);
  return kName;
}

}  // namespace

Gateway::Gateway(const Parts& parts, std::shared_ptr<const GatewayOptions> options)
    : loop_(parts.loop),
      resolver_(parts.resolver),
      worker_(parts.worker),
      observer_(parts.observer),
      routing_(std::make_shared<Routing>(loop_, resolver_, std::move(options), nullptr)),
      lingering_(loop_),
      name_(process_name()),
      via_1_0_(fmt::format("1.0 {}", name_)),
      via_1_1_(fmt::format("1.1 {}", name_)),
      ids_({random_seed(), random_seed()}),
      random_(random_seed()) {}

Gateway::~Gateway() {
  while (Connection* const connection = connections_.front()) destroy(*connection);
}

void Gateway::use(std::shared_ptr<const GatewayOptions> options) {
  routing_ = std::make_shared<Routing>(loop_, resolver_, std::move(options), routing_.get());
  ++generation_;
  exchanges_.clear();
}

void Gateway::accept(net::Accepted accepted, const Entrance& entrance) {
  const GatewayOptions& options = *routing_->options;
  // Whoever may open a Unix socket is trusted with what it says.
  const bool is_stranger = entrance.proxy_protocol && !accepted.peer.is_local &&
                           !options.trusted_proxies.contains(accepted.peer.address);
  if (connection_count_ >= options.connections_max || is_stranger || draining_) {
    ++counts_.turned_away;
    return;
  }
  ++counts_.connections;
  ++connection_count_;
  auto connection = std::make_unique<Connection>(*this, accepted.peer, entrance);
  Connection& opened = *connection.release();
  connections_.push_back(opened);
  if (!opened.open(std::move(accepted.descriptor))) destroy(opened);
}

bool Gateway::count(const IpAddress& address) {
  const std::uint32_t most = routing_->options->connections_per_address;
  std::uint32_t& of_address = by_address_[network_of(address)];
  if (most > 0 && of_address >= most) {
    ++counts_.turned_away;
    return false;
  }
  ++of_address;
  return true;
}

void Gateway::destroy(Connection& connection) noexcept {
  if (connection.is_counted()) {
    const auto found = by_address_.find(network_of(connection.peer().address));
    if (found != by_address_.end() && --found->second == 0) by_address_.erase(found);
  }
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
    auto made = std::make_unique<Exchange>(head, std::min(head.headers, net::kHeadersMax));
    made->generation = generation_;
    return made;
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
  const bool is_current = exchange->generation == generation_;
  if (is_current && exchanges_.size() < kExchangesKept) exchanges_.push_back(std::move(exchange));
}

std::string_view Gateway::date() noexcept {
  const auto since_1970 = loop_.now().wall().time_since_epoch();
  const std::int64_t second = std::chrono::floor<std::chrono::seconds>(since_1970).count();
  if (second != date_second_) {
    date_second_ = second;
    (void)net::format_http_date(second, date_);
  }
  return {date_.data(), date_.size()};
}

}  // namespace sluice::gateway
