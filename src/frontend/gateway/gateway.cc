#include "frontend/gateway/gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <malloc.h>
#include <random>
#include <string>
#include <utility>

namespace sluice::gateway {
namespace {

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32U | device();
}

// The same for all workers: a request in a loop may return to any of them. Other processes have
// other names, since one Sluice may be behind another.
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
      connection_counts_(parts.connection_counts),
      routing_(std::make_shared<Routing>(loop_, resolver_, std::move(options), nullptr)),
      lingering_(loop_),
      trim_(net::Callback<>::to<&Gateway::trim>(*this)),
      name_(process_name()),
      via_1_0_(fmt::format("1.0 {}", name_)),
      via_1_1_(fmt::format("1.1 {}", name_)),
      ids_({random_seed(), random_seed()}),
      random_(random_seed()) {}

Gateway::~Gateway() {
  while (Connection* const connection = busy_.front()) destroy(*connection);
  while (Connection* const connection = idle_.front()) destroy(*connection);
}

void Gateway::use_tls(std::shared_ptr<const net::TlsServer> tls) {
  const net::TlsServer::ClientTrust trust =
      tls != nullptr ? tls->client_trust() : net::TlsServer::ClientTrust{};
  tls_ = std::move(tls);
  if (std::exchange(client_trust_, trust) == trust) return;
  ++trust_;
  for (Connection* one = idle_.front(); one != nullptr;) {
    Connection& connection = *one;
    one = idle_.behind(connection);
    if (!connection.is_outdated()) continue;
    connection.say_farewell();
    destroy(connection);
  }
}

void Gateway::use(std::shared_ptr<const GatewayOptions> options) {
  if (options == routing_->options) return;
  routing_ = std::make_shared<Routing>(loop_, resolver_, std::move(options), routing_.get());
  ++generation_;
  exchanges_.clear();
}

void Gateway::accept(net::Accepted accepted, const Entrance& entrance) {
  const GatewayOptions& options = *routing_->options;
  // A peer that may open a Unix socket is trusted.
  const bool is_stranger = entrance.proxy_protocol && !accepted.peer.is_local &&
                           !options.trusted_proxies.contains(accepted.peer.address);
  const bool has_room = connection_count_ < options.max_connections_per_worker;
  if (is_stranger || draining_ || (!has_room && !evict_idle())) {
    ++counts_.connections_rejected;
    return;
  }
  ++counts_.connections;
  ++connection_count_;
  auto connection = std::make_unique<Connection>(*this, accepted.peer, entrance);
  Connection& opened = *connection.release();
  idle_.push_back(opened);
  if (!opened.open(std::move(accepted.descriptor))) destroy(opened);
}

bool Gateway::count(const IpAddress& address) {
  if (connection_counts_.add(address, routing_->options->max_connections_per_ip)) return true;
  ++counts_.connections_rejected;
  return false;
}

bool Gateway::evict_idle() {
  const MonoTime idle_since = loop_.now().mono - kIdleBeforeEviction;
  Connection* chosen = nullptr;
  std::uint32_t most = 0;
  int seen = 0;
  for (Connection* one = idle_.front(); one != nullptr; one = idle_.behind(*one)) {
    if (one->idle_since() > idle_since || ++seen > kEvictionCandidates) break;
    const std::uint32_t connections = connection_counts_.of(one->peer().address);
    if ((chosen != nullptr && connections <= most) || !one->is_evictable()) continue;
    chosen = one;
    most = connections;
  }
  if (chosen == nullptr) return false;
  ++counts_.evicted;
  chosen->say_farewell();
  destroy(*chosen);
  return true;
}

void Gateway::destroy(Connection& connection) noexcept {
  if (connection.is_counted()) connection_counts_.remove(connection.peer().address);
  --connection_count_;
  connection.unlink();
  delete &connection;
}

void Gateway::drain() {
  if (std::exchange(draining_, true)) return;
  for (Connection* one = idle_.front(); one != nullptr; one = idle_.behind(*one)) one->drain();
}

std::unique_ptr<Exchange> Gateway::take_exchange() {
  if (std::unique_ptr<Exchange> spare = exchanges_.take()) return spare;
  const net::HeadLimits& head = routing_->options->head;
  auto made = std::make_unique<Exchange>(head, std::min(head.headers, net::kHeadersMax));
  made->generation = generation_;
  return made;
}

void Gateway::give_back(std::unique_ptr<Exchange> exchange) {
  buffers_.give_back(std::move(exchange->server_buffer));
  buffers_.give_back(std::move(exchange->request_buffer));
  buffers_.give_back(std::move(exchange->answer_buffer));
  exchange->routing = nullptr;
  if (exchange->generation == generation_) exchanges_.give_back(std::move(exchange));
  const bool has_surplus = exchanges_.has_surplus() || buffers_.has_surplus();
  if (has_surplus && !trim_.is_set()) loop_.set(trim_, kTrimEvery);
}

void Gateway::trim() {
  memory_.freed(exchanges_.trim() + buffers_.trim());
  if (memory_.take(loop_.now().mono)) (void)::malloc_trim(0);
  const bool has_surplus = exchanges_.has_surplus() || buffers_.has_surplus();
  if (has_surplus || memory_.is_due_some_time()) loop_.set(trim_, kTrimEvery);
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
