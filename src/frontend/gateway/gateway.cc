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
  const bool has_room = connection_count_ < options.connections_max;
  if (is_stranger || draining_ || (!has_room && !evict_idle())) {
    ++counts_.turned_away;
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
  const std::uint32_t most = routing_->options->connections_per_address;
  std::uint32_t& of_address = by_address_[network_of(address)];
  if (most > 0 && of_address >= most) {
    ++counts_.turned_away;
    return false;
  }
  ++of_address;
  return true;
}

std::uint32_t Gateway::connections_of(const IpAddress& address) const noexcept {
  const auto found = by_address_.find(network_of(address));
  return found != by_address_.end() ? found->second : 0;
}

bool Gateway::evict_idle() {
  const MonoTime idle_since = loop_.now().mono - kIdleBeforeEviction;
  Connection* chosen = nullptr;
  std::uint32_t most = 0;
  int seen = 0;
  for (Connection* one = idle_.front(); one != nullptr; one = idle_.behind(*one)) {
    if (one->idle_since() > idle_since || ++seen > kEvictionCandidates) break;
    const std::uint32_t connections = connections_of(one->peer().address);
    if (!one->is_evictable() || (chosen != nullptr && connections <= most)) continue;
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

// The allocator keeps what is freed below something that is still used; a flood leaves enough of it
// to be worth some milliseconds.
void Gateway::trim() {
  constexpr std::size_t kWorthReturning = 64;
  const std::size_t freed = exchanges_.trim() + buffers_.trim();
  if (freed >= kWorthReturning) (void)::malloc_trim(0);
  if (exchanges_.has_surplus() || buffers_.has_surplus()) loop_.set(trim_, kTrimEvery);
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
