#include "frontend/gateway/upstream.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace sluice::gateway {

// ---- connections ------------------------------------------------------------------------------

UpstreamConnection::UpstreamConnection(UpstreamServer& server) noexcept
    : server_(server),
      stream_(net::Callback<>::to<&UpstreamConnection::on_stream>(*this)),
      idle_(net::Callback<>::to<&UpstreamConnection::on_idle_too_long>(*this)) {}

void UpstreamConnection::on_stream() {
  if (on_ready_) return on_ready_();
  // A server that says something unasked, or hangs up: of no more use.
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
  if (found) addresses_ = *found;
  lost_ = addresses_ == nullptr ? found.error().message : std::string{};
}

// Of several addresses of a name, each in turn.
std::optional<net::SocketAddress> UpstreamServer::address() noexcept {
  const net::Endpoint& endpoint = server_.endpoint;
  switch (endpoint.kind) {
    case net::Endpoint::Kind::any:
      return net::SocketAddress::of(IpAddress::v4(0x7f000001U), endpoint.port);
    case net::Endpoint::Kind::address:
      return net::SocketAddress::of(endpoint.address, endpoint.port);
    case net::Endpoint::Kind::unix_path: return net::SocketAddress::of_path(endpoint.name);
    case net::Endpoint::Kind::name: break;
  }
  if (addresses_ == nullptr) return std::nullopt;
  return net::SocketAddress::of((*addresses_)[next_address_++ % addresses_->size()], endpoint.port);
}

void UpstreamServer::forget(UpstreamConnection& idle) noexcept {
  idle.unlink();
  --idle_count_;
  idle.stream_.close();
  delete &idle;
}

// What a server says unasked, or its end, may have come in this turn of the loop and not been told
// yet: it must not become somebody's answer.
std::unique_ptr<UpstreamConnection> UpstreamServer::take_idle() noexcept {
  while (!idle_.empty() && !idle_.front()->stream_.is_silent()) forget(*idle_.front());
  if (idle_.empty()) return nullptr;
  std::unique_ptr<UpstreamConnection> connection{idle_.pop_front()};
  connection->idle_.cancel();
  connection->used_before_ = true;
  --idle_count_;
  ++in_use_;
  return connection;
}

std::unique_ptr<UpstreamConnection> UpstreamServer::take(bool fresh) {
  if (std::unique_ptr<UpstreamConnection> idle = fresh ? nullptr : take_idle()) return idle;
  const std::optional<net::SocketAddress> to = address();
  if (!to) return nullptr;
  auto connection = std::make_unique<UpstreamConnection>(*this);
  const net::IoResult result = connection->stream_.connect(loop_, *to);
  if (result.is_failed()) return nullptr;
  if (options_.tls != nullptr) {
    const net::Endpoint& endpoint = server_.endpoint;
    const std::string name = !options_.host.empty() ? options_.host
                             : endpoint.kind == net::Endpoint::Kind::address
                                 ? endpoint.address.text()
                                 : endpoint.name;
    if (!connection->stream_.start_tls(*options_.tls, name)) return nullptr;
  }
  ++in_use_;
  return connection;
}

void UpstreamServer::give_back(std::unique_ptr<UpstreamConnection> connection) {
  --in_use_;
  connection->on_ready_ = {};
  const bool is_quiet = !connection->stream_.can_read() && !connection->stream_.peer_hung_up();
  if (!is_quiet || idle_count_ >= options_.keep_alive) {
    connection->stream_.close();
    return;
  }
  loop_.set(connection->idle_, options_.idle_for);
  ++idle_count_;
  idle_.push_front(*connection.release());
}

void UpstreamServer::drop(std::unique_ptr<UpstreamConnection> connection) noexcept {
  --in_use_;
  connection->stream_.close();
}

void UpstreamServer::failed(MonoTime now) noexcept {
  ++failures_;
  if (++failures_in_a_row_ < options_.failures) return;
  failures_in_a_row_ = 0;
  alone_until_ = now + options_.left_alone_for;
}

// ---- groups -----------------------------------------------------------------------------------

UpstreamGroup::UpstreamGroup(net::EventLoop& loop, net::Resolver& resolver,
                             std::shared_ptr<const UpstreamOptions> options)
    : options_(std::move(options)) {
  for (const ServerOptions& server : options_->servers) {
    servers_.push_back(std::make_unique<UpstreamServer>(loop, resolver, *options_, server));
  }
}

bool UpstreamGroup::serves(const UpstreamOptions& options) const {
  UpstreamOptions other = options;
  other.meters = options_->meters;  // of the same name, so they count the same
  return options.tls == nullptr && other == *options_;
}

void UpstreamGroup::passed_on() noexcept { earned_ = std::min(earned_ + 1, kEarnedMax); }

bool UpstreamGroup::may_retry() noexcept {
  if (earned_ < kRequestsPerRetry) return false;
  earned_ -= kRequestsPerRetry;
  return true;
}

UpstreamServer& UpstreamGroup::choose(std::uint64_t client, const UpstreamServer* except,
                                      MonoTime now) noexcept {
  UpstreamServer* chosen = options_->balance == Balance::hash ? by_hash(client, except, now)
                           : options_->balance == Balance::least_connections
                               ? least_in_use(except, now)
                               : next_in_round(except, now);
  if (chosen != nullptr) return *chosen;
  // All are left alone: better the one that has been for longest than none.
  return **std::ranges::min_element(servers_, {}, [except](const auto& server) {
    return std::pair{server.get() == except, server->alone_until_};
  });
}

// Each server's turn comes as often as its weight, and not all at once.
UpstreamServer* UpstreamGroup::next_in_round(const UpstreamServer* except, MonoTime now) noexcept {
  UpstreamServer* next = nullptr;
  std::int64_t weights = 0;
  for (const auto& server : servers_) {
    if (server.get() == except || server->is_left_alone(now)) continue;
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
    if (server.get() == except || server->is_left_alone(now)) continue;
    if (least == nullptr ||
        load(*server, least->server_.weight) < load(*least, server->server_.weight)) {
      least = server.get();
    }
  }
  return least;
}

// Rendezvous: every server draws a lot for the client, and the highest wins. When one is gone, only
// its clients move.
UpstreamServer* UpstreamGroup::by_hash(std::uint64_t client, const UpstreamServer* except,
                                       MonoTime now) noexcept {
  UpstreamServer* highest = nullptr;
  std::uint64_t best = 0;
  for (const auto& server : servers_) {
    if (server.get() == except || server->is_left_alone(now)) continue;
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
