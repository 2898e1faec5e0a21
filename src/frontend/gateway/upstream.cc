#include "frontend/gateway/upstream.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace sluice::gateway {
namespace {

// Nothing: it needs a lookup.
std::optional<net::SocketAddress> address_of(const net::Endpoint& endpoint) noexcept {
  switch (endpoint.kind) {
    case net::Endpoint::Kind::any:
      return net::SocketAddress::of(IpAddress::v4(0x7f000001U), endpoint.port);
    case net::Endpoint::Kind::address:
      return net::SocketAddress::of(endpoint.address, endpoint.port);
    case net::Endpoint::Kind::unix_path: return net::SocketAddress::of_path(endpoint.name);
    case net::Endpoint::Kind::name: break;
  }
  return std::nullopt;
}

}  // namespace

// ---- connections ------------------------------------------------------------------------------

UpstreamConnection::UpstreamConnection(UpstreamServer& server,
                                       UpstreamAddresses::Shared address) noexcept
    : server_(server),
      address_(std::move(address)),
      stream_(net::Callback<>::to<&UpstreamConnection::on_stream>(*this)),
      idle_(net::Callback<>::to<&UpstreamConnection::on_idle_too_long>(*this)) {}

void UpstreamConnection::on_stream() {
  if (on_ready_) return on_ready_();
  // The server sent bytes without a request, or closed: the connection is unusable.
  server_.forget(*this);
}

void UpstreamConnection::on_idle_too_long() { server_.forget(*this); }

// ---- servers ----------------------------------------------------------------------------------

UpstreamServer::UpstreamServer(net::EventLoop& loop, net::Resolver& resolver,
                               const UpstreamOptions& options, const ServerOptions& server)
    : loop_(loop),
      resolver_(resolver),
      options_(options),
      server_(server),
      name_(server.endpoint.text()),
      lookup_(net::Callback<const net::Resolution&>::to<&UpstreamServer::on_found>(*this)),
      next_lookup_(net::Callback<>::to<&UpstreamServer::look_up>(*this)),
      addresses_(address_of(server.endpoint)),
      demand_(std::min(options.keepalive_timeout, kDemandPeriod)),
      seed_(std::hash<std::string>{}(name_)) {
  if (server.endpoint.kind == net::Endpoint::Kind::name) look_up();
}

UpstreamServer::~UpstreamServer() {
  while (!idle_.empty()) forget(*idle_.front());
}

void UpstreamServer::look_up() {
  loop_.set(next_lookup_, kAskEvery);
  if (!lookup_.is_waiting()) resolver_.resolve(server_.endpoint.name, loop_, lookup_);
}

void UpstreamServer::on_found(const net::Resolution& found) {
  // The resolver returns the same result until there is a new one.
  if (found && found_ != *found) {
    found_ = *found;
    addresses_.assign(*found_, server_.endpoint.port);
  }
  lost_ = found_ == nullptr ? found.error().message : std::string{};
}

void UpstreamServer::forget(UpstreamConnection& idle) noexcept {
  idle.unlink();
  --idle_count_;
  idle.stream_.close();
  delete &idle;
}

// Unexpected bytes or a close may have come in this turn of the loop and not been reported yet:
// they must not become a response. Connections to ejected addresses are not reused.
bool UpstreamServer::is_usable(const UpstreamConnection& idle, MonoTime now) const noexcept {
  if (!idle.stream_.is_silent()) return false;
  return !idle.address_->is_ejected(now) || addresses_.are_ejected(now);
}

std::unique_ptr<UpstreamConnection> UpstreamServer::take_idle(MonoTime now) noexcept {
  while (!idle_.empty() && !is_usable(*idle_.front(), now)) forget(*idle_.front());
  if (idle_.empty()) return nullptr;
  std::unique_ptr<UpstreamConnection> connection{idle_.pop_front()};
  connection->idle_.cancel();
  connection->used_before_ = true;
  --idle_count_;
  demand_.count(++in_use_, loop_.now().mono);
  return connection;
}

UpstreamServer::Taken UpstreamServer::take(const Wanted& wanted, MonoTime now) {
  if (!wanted.fresh) {
    if (auto idle = take_idle(now)) return {.connection = std::move(idle), .address = {}};
  }
  const UpstreamAddresses::Shared& to = addresses_.next(wanted.except, now);
  if (!to->where()) return {.connection = nullptr, .address = to};
  auto connection = std::make_unique<UpstreamConnection>(*this, to);
  const net::IoResult result = connection->stream_.connect(loop_, *to->where());
  if (result.is_failed()) {
    return {.connection = nullptr,
            .address = to,
            .why = result.why,
            .lack = local_exhaustion(result.why, *to->where())};
  }
  if (options_.tls != nullptr) {
    const net::Endpoint& endpoint = server_.endpoint;
    const std::string name = !options_.tls_server_name.empty() ? options_.tls_server_name
                             : !options_.host_header.empty()   ? options_.host_header
                             : endpoint.kind == net::Endpoint::Kind::address
                                 ? endpoint.address.text()
                                 : endpoint.name;
    if (!connection->stream_.start_tls(*options_.tls, name)) {
      return {.connection = nullptr, .address = to};
    }
  }
  demand_.count(++in_use_, loop_.now().mono);
  return {.connection = std::move(connection), .address = {}};
}

void UpstreamServer::give_back(std::unique_ptr<UpstreamConnection> connection) {
  demand_.count(in_use_--, loop_.now().mono);
  connection->on_ready_ = {};
  const bool is_quiet = !connection->stream_.can_read() && !connection->stream_.peer_hung_up();
  const std::size_t most = idle_max();
  if (!is_quiet || most == 0) {
    connection->stream_.close();
    return;
  }
  loop_.set(connection->idle_, options_.keepalive_timeout);
  ++idle_count_;
  idle_.push_front(*connection.release());
  // Rather the longest idle connection than the one just used: its server will close it first.
  if (idle_count_ > most) close_idle(std::min(idle_count_ - most, kClosedAtOnce));
}

// The recent peak includes connections in use: the difference is what would be missing if demand
// were as high again.
std::size_t UpstreamServer::idle_max() const noexcept {
  const std::size_t in_demand = demand_.peak() - std::min(in_use_, demand_.peak());
  return options_.keepalive_connections ? std::min(*options_.keepalive_connections, in_demand)
                                        : in_demand;
}

std::size_t UpstreamServer::close_idle(std::size_t most) noexcept {
  const std::size_t count = std::min(most, idle_count_);
  for (std::size_t i = 0; i < count; ++i) forget(*idle_.back());
  return count;
}

void UpstreamServer::drop(std::unique_ptr<UpstreamConnection> connection) noexcept {
  demand_.count(in_use_--, loop_.now().mono);
  connection->stream_.close();
}

std::optional<IpAddress> UpstreamServer::address_told(
    const UpstreamAddress& address) const noexcept {
  if (addresses_.all().size() == 1 || !address.where()) return std::nullopt;
  return address.where()->ip();
}

bool UpstreamServer::failed(UpstreamAddress& address, MonoTime now) noexcept {
  ++failures_;
  return address.failed(options_, now);
}

// ---- groups -----------------------------------------------------------------------------------

UpstreamGroup::UpstreamGroup(net::EventLoop& loop, net::Resolver& resolver,
                             std::shared_ptr<const UpstreamOptions> options)
    : options_(std::move(options)) {
  for (const ServerOptions& server : options_->servers) {
    servers_.push_back(std::make_unique<UpstreamServer>(loop, resolver, *options_, server));
  }
}

void UpstreamGroup::passed_on() noexcept { earned_ = std::min(earned_ + 1, kEarnedMax); }

bool UpstreamGroup::may_retry() noexcept {
  if (earned_ < kRequestsPerRetry) return false;
  earned_ -= kRequestsPerRetry;
  return true;
}

UpstreamServer& UpstreamGroup::choose(std::uint64_t client, const Tried& except,
                                      MonoTime now) noexcept {
  UpstreamServer* chosen =
      options_->balance == Balance::client_hash         ? by_hash(client, except.server, now)
      : options_->balance == Balance::least_connections ? least_in_use(except.server, now)
                                                        : next_in_round(except.server, now);
  if (chosen != nullptr) return *chosen;
  if (except.server != nullptr && except.server->addresses_.has_another(except.address, now)) {
    return *except.server;
  }
  // All are ejected: better the one ejected first than none.
  return **std::ranges::min_element(servers_, {}, [&except](const auto& server) {
    return std::pair{server.get() == except.server, server->addresses_.ejected_until()};
  });
}

bool UpstreamGroup::has_another(const Tried& except, MonoTime now) const noexcept {
  return servers_.size() > 1 || servers_.front()->addresses_.has_another(except.address, now);
}

// Each server's turn comes in proportion to its weight, and not all at once.
UpstreamServer* UpstreamGroup::next_in_round(const UpstreamServer* except, MonoTime now) noexcept {
  UpstreamServer* next = nullptr;
  std::int64_t weights = 0;
  for (const auto& server : servers_) {
    if (server.get() == except || server->is_ejected(now)) continue;
    weights += server->server_.weight;
    server->turn_ += server->server_.weight;
    if (next == nullptr || server->turn_ > next->turn_) next = server.get();
  }
  if (next != nullptr) next->turn_ -= weights;
  return next;
}

UpstreamServer* UpstreamGroup::least_in_use(const UpstreamServer* except, MonoTime now) noexcept {
  UpstreamServer* least = nullptr;
  const auto load = [](const UpstreamServer& server, std::uint64_t other_weight) {
    return std::uint64_t{server.in_use_ + 1} * other_weight;
  };
  for (const auto& server : servers_) {
    if (server.get() == except || server->is_ejected(now)) continue;
    if (least == nullptr ||
        load(*server, least->server_.weight) < load(*least, server->server_.weight)) {
      least = server.get();
    }
  }
  return least;
}

// Rendezvous hashing: every server draws a lot for the client, and the highest wins. When a server
// is removed, only its clients move.
UpstreamServer* UpstreamGroup::by_hash(std::uint64_t client, const UpstreamServer* except,
                                       MonoTime now) noexcept {
  UpstreamServer* highest = nullptr;
  std::uint64_t best = 0;
  for (const auto& server : servers_) {
    if (server.get() == except || server->is_ejected(now)) continue;
    for (std::uint32_t i = 0; i < server->server_.weight; ++i) {
      std::uint64_t lot = client ^ (server->seed_ + i * 0x9e3779b97f4a7c15U);
      lot = (lot ^ (lot >> 31U)) * 0x7fb5d329728ea185U;
      lot = (lot ^ (lot >> 27U)) * 0x81dadef4bc2dd44dU;
      lot ^= lot >> 33U;
      if (highest == nullptr || lot > best) {
        highest = server.get();
        best = lot;
      }
    }
  }
  return highest;
}

}  // namespace sluice::gateway
