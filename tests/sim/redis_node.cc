#include "sim/redis_node.h"

#include "sim/resp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace sluice::sim {
namespace {

// Between primary and replica only; Redis has other words for them. A replica asks once, is told
// RESYNC OFFSET and everything, then the transactions as they happen, each as one message.
constexpr std::string_view kSync = "SYNC";
constexpr std::string_view kResync = "RESYNC";

void append_effects(std::string& to, const Effects& effects) {
  std::vector<std::string_view> words;
  for (const std::vector<std::string>& effect : effects) {
    words.assign(effect.begin(), effect.end());
    append_command(to, words);
  }
}

}  // namespace

RedisNode::RedisNode(World& world, Network& network, std::string name, const Settings& settings)
    : network_(network),
      process_(world, std::move(name), settings.clock),
      address_(network.add(process_)),
      settings_(settings),
      server_(address_ + 1) {
  process_.observe(crashes_);
  network_.listen(address_, *this);
  server_.on_transaction([this](const Effects& effects) { send_to_replicas(effects); });
}

// ---- clients ----------------------------------------------------------------------------------

ConnectionHandler* RedisNode::accepted(Socket socket, Address) {
  clients_.push_back(socket);
  return &clients_handler_;
}

void RedisNode::Clients::received(Socket socket, std::string_view message) {
  node.enqueue(socket, message);
}

void RedisNode::Clients::closed(Socket socket, Closed) {
  std::erase(node.clients_, socket);
  std::erase(node.replicas_, socket);
}

void RedisNode::enqueue(Socket from, std::string_view message) {
  std::int64_t commands = 0;
  for (std::string_view rest = message; !rest.empty(); ++commands) (void)take_command(rest);
  queue_.push_back({.from = from, .message = std::string{message}});
  busy_until_ = std::max(busy_until_, process_.clock().now().mono) + settings_.service * commands;
  process_.at(busy_until_, [this] { serve(); });
}

// A command that has arrived is executed, even if its client has gone.
void RedisNode::serve() {
  const Request request = std::move(queue_.front());
  queue_.pop_front();
  buffer_.clear();
  for (std::string_view rest = request.message; !rest.empty();) {
    const std::vector<std::string_view> words = take_command(rest);
    if (words.size() == 1 && words[0] == kSync) return send_snapshot(request.from);
    const WallTime wall = process_.clock().wall();
    const Reply reply = server_.handle(words, wall);
    if (observer_ != nullptr) observer_->executed(address_, request.from, words, reply, wall);
    append_reply(buffer_, reply);
  }
  network_.send(request.from, buffer_);
}

// ---- replication ------------------------------------------------------------------------------

void RedisNode::send_snapshot(Socket to) {
  if (!network_.is_open(to)) return;
  const std::string offset = std::to_string(server_.offset());
  const std::array<std::string_view, 2> begin{kResync, offset};
  buffer_.clear();
  append_command(buffer_, begin);
  append_effects(buffer_, server_.snapshot());
  network_.send(to, buffer_);
  replicas_.push_back(to);
}

void RedisNode::send_to_replicas(const Effects& effects) {
  if (replicas_.empty()) return;
  std::string message;
  append_effects(message, effects);
  for (const Socket replica : replicas_) network_.send(replica, message);
}

void RedisNode::replicate_from(Address primary) {
  promote();
  server_.set_role(RedisServer::Role::replica);
  for (const Socket client : std::exchange(clients_, {})) network_.close(client);
  replicas_.clear();
  follows_ = true;
  primary_ = primary;
  if (process_.is_alive()) connect_upstream();
}

void RedisNode::promote() {
  server_.set_role(RedisServer::Role::primary);
  follows_ = false;
  process_.cancel(reconnect_);
  network_.close(std::exchange(upstream_, {}));
}

void RedisNode::connect_upstream() {
  upstream_ = network_.connect(address_, primary_, upstream_handler_);
  const std::array<std::string_view, 1> sync{kSync};
  std::string message;
  append_command(message, sync);
  network_.send(upstream_, message);
}

void RedisNode::Upstream::received(Socket, std::string_view message) { node.follow(message); }

void RedisNode::Upstream::closed(Socket, Closed) {
  node.upstream_ = {};
  node.reconnect_ = node.process_.after(node.settings_.reconnect, [this] {
    if (node.follows_) node.connect_upstream();
  });
}

void RedisNode::follow(std::string_view message) {
  Effects effects;
  while (!message.empty()) {
    const std::vector<std::string_view> words = take_command(message);
    effects.emplace_back(words.begin(), words.end());
  }
  if (effects.front().front() != kResync) return server_.apply(effects);
  const std::string offset = effects.front().at(1);
  effects.erase(effects.begin());
  server_.clear();
  server_.apply(effects);
  server_.set_offset(std::stoull(offset));
}

// ---- crashes ----------------------------------------------------------------------------------

void RedisNode::Crashes::crashed(Process&, Crash) {
  node.queue_.clear();
  node.clients_.clear();
  node.replicas_.clear();
  node.upstream_ = {};
  node.busy_until_ = {};
}

void RedisNode::restart(Restart how) {
  if (process_.is_alive()) throw std::logic_error{"a server that runs was restarted"};
  if (how == Restart::empty) {
    server_.clear();
  } else {
    server_.restart_with_data();
  }
  process_.restart();
  if (follows_) connect_upstream();
}

}  // namespace sluice::sim
