#include "sim/network.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace sluice::sim {
namespace {

constexpr std::uint8_t other(std::uint8_t side) { return side ^ 1U; }

}  // namespace

Network::Network(World& world)
    : world_(world), random_(world.random("network")), faults_(world.random("network faults")) {}

Address Network::add(Process& process) {
  process.observe(*this);
  hosts_.push_back({.process = &process});
  return static_cast<Address>(hosts_.size() - 1);
}

Address Network::address_of(const Process& process) const {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].process == &process) return static_cast<Address>(i);
  }
  throw std::logic_error{"a process that was not added"};
}

Network::Link& Network::link(Address from, Address to) {
  const auto found = links_.find({from, to});
  if (found != links_.end()) return found->second;
  return links_.emplace(std::pair{from, to}, Link{.path = usual_}).first->second;
}

const Network::Connection* Network::find(Socket socket) const noexcept {
  if (socket.generation == 0 || socket.connection >= connections_.size()) return nullptr;
  const Connection& connection = connections_[socket.connection];
  return connection.in_use && connection.generation == socket.generation ? &connection : nullptr;
}

// ---- sending ----------------------------------------------------------------------------------

Nanos Network::transit(const Link& link) {
  return link.path.delay + random_.time_below(link.path.jitter);
}

Socket Network::connect(Address from, Address to, ConnectionHandler& handler) {
  std::uint32_t number = 0;
  if (free_.empty()) {
    number = static_cast<std::uint32_t>(connections_.size());
    connections_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  Connection& connection = connections_[number];
  connection.in_use = true;
  connection.sides[0] = {.address = from, .handler = &handler};
  connection.sides[1] = {.address = to};
  ++counts_.connections;
  push(number, 1, Kind::open, {});
  return {.connection = number, .generation = connection.generation, .side = 0};
}

bool Network::is_open(Socket socket) const noexcept {
  const Connection* const connection = find(socket);
  return connection != nullptr && connection->sides[socket.side].handler != nullptr;
}

void Network::send(Socket socket, std::string_view message) {
  if (!is_open(socket)) return;
  push(socket.connection, other(socket.side), Kind::data, message);
}

void Network::close(Socket socket) {
  if (!is_open(socket)) return;
  connections_[socket.connection].sides[socket.side].handler = nullptr;
  push(socket.connection, other(socket.side), Kind::end, {});
  free_if_done(socket.connection);
}

// To the given side.
void Network::push(std::uint32_t number, std::uint8_t side, Kind kind, std::string_view bytes) {
  Connection& connection = connections_[number];
  Direction& direction = connection.to[side];
  // The sender does not know yet that it talks to nothing.
  if (direction.has_ended || (connection.broken && kind != Kind::reset)) return;
  const Link& path = link(connection.sides[other(side)].address, connection.sides[side].address);
  Nanos time = transit(path);
  if (path.path.loss_ppm > 0 && faults_.happens(path.path.loss_ppm)) time += path.path.retransmit;
  Segment segment{.arrival = world_.now() + time, .kind = kind};
  if (!spare_.empty()) {
    segment.bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  segment.bytes.assign(bytes);
  const WorldTime arrival = segment.arrival;
  direction.has_ended = kind == Kind::end || kind == Kind::reset || kind == Kind::refused;
  const bool was_empty = direction.queue.empty();
  direction.queue.push_back(std::move(segment));
  if (was_empty) arm(number, side, arrival);
}

// ---- arriving ---------------------------------------------------------------------------------

void Network::arm(std::uint32_t number, std::uint8_t side, WorldTime when) {
  Direction& direction = connections_[number].to[side];
  if (direction.is_armed) world_.cancel(direction.timer);
  direction.is_armed = true;
  direction.timer = world_.at(when, [this, number, side] { drain(number, side); });
}

bool Network::is_deliverable(std::uint32_t number, std::uint8_t side) {
  Connection& connection = connections_[number];
  const Segment& first = connection.to[side].queue.front();
  if (first.arrival > world_.now()) {
    arm(number, side, first.arrival);
    return false;
  }
  const Link& path = link(connection.sides[other(side)].address, connection.sides[side].address);
  if (path.is_cut) return false;  // heal() goes on from here
  if (path.stalled_until > world_.now()) {
    arm(number, side, path.stalled_until);
    return false;
  }
  const Process& process = *hosts_[connection.sides[side].address].process;
  if (!process.is_paused()) return true;
  if (first.kind == Kind::open) greet(number);
  return false;  // resumed() goes on from here
}

void Network::drain(std::uint32_t number, std::uint8_t side) {
  Connection& connection = connections_[number];
  Direction& direction = connection.to[side];
  direction.is_armed = false;
  const std::uint32_t generation = connection.generation;
  // A handler may close this connection, and another one may take its place.
  while (connection.generation == generation && connection.in_use && !direction.queue.empty() &&
         is_deliverable(number, side)) {
    Segment segment = std::move(direction.queue.front());
    direction.queue.pop_front();
    deliver(number, side, segment);
    if (spare_.size() < 64) spare_.push_back(std::move(segment.bytes));
  }
  if (connection.generation == generation) free_if_done(number);
}

void Network::deliver(std::uint32_t number, std::uint8_t side, const Segment& segment) {
  Connection& connection = connections_[number];
  Side& at = connection.sides[side];
  world_.note((std::uint64_t{number} << 8U) | (std::uint64_t{side} << 4U) |
              static_cast<std::uint64_t>(segment.kind));
  const Socket socket{.connection = number, .generation = connection.generation, .side = side};
  if (!hosts_[at.address].process->machine_is_up()) return;
  switch (segment.kind) {
    case Kind::open: return deliver_open(number);
    case Kind::opened:
      if (at.handler == nullptr) return;
      return at.handler->opened(socket);
    case Kind::data:
      world_.note(segment.bytes);
      ++counts_.messages;
      if (at.handler == nullptr) return reply_reset(number, side, Kind::reset);
      return at.handler->received(socket, segment.bytes);
    case Kind::end: return close_side(number, side, Closed::by_peer);
    case Kind::reset: return close_side(number, side, Closed::reset);
    case Kind::refused: return close_side(number, side, Closed::refused);
  }
}

void Network::greet(std::uint32_t number) {
  Connection& connection = connections_[number];
  if (std::exchange(connection.greeted, true)) return;
  push(number, 0, Kind::opened, {});
}

void Network::deliver_open(std::uint32_t number) {
  Connection& connection = connections_[number];
  Side& at = connection.sides[1];
  const Host& host = hosts_[at.address];
  if (host.listener == nullptr || !host.process->is_alive()) {
    return reply_reset(number, 1, connection.greeted ? Kind::reset : Kind::refused);
  }
  greet(number);
  const Socket socket{.connection = number, .generation = connection.generation, .side = 1};
  ConnectionHandler* const handler = host.listener->accepted(socket, connection.sides[0].address);
  if (handler == nullptr) return reply_reset(number, 1, Kind::reset);
  at.handler = handler;
  handler->opened(socket);
}

// From a side that does not know the connection, once.
void Network::reply_reset(std::uint32_t number, std::uint8_t side, Kind kind) {
  push(number, other(side), kind, {});
}

void Network::close_side(std::uint32_t number, std::uint8_t side, Closed how) {
  Connection& connection = connections_[number];
  Side& at = connection.sides[side];
  if (at.handler == nullptr) return;
  const Socket socket{.connection = number, .generation = connection.generation, .side = side};
  // What this side had sent is on its way; what it sends from here on is not.
  if (how == Closed::by_peer) push(number, other(side), Kind::end, {});
  connection.to[other(side)].has_ended = true;
  std::exchange(at.handler, nullptr)->closed(socket, how);
}

void Network::free_if_done(std::uint32_t number) {
  Connection& connection = connections_[number];
  if (!connection.in_use) return;
  for (const std::uint8_t side : {std::uint8_t{0}, std::uint8_t{1}}) {
    if (connection.sides[side].handler != nullptr || !connection.to[side].queue.empty()) return;
  }
  for (Direction& direction : connection.to) {
    if (direction.is_armed) world_.cancel(direction.timer);
    direction.is_armed = direction.has_ended = false;
  }
  connection.in_use = connection.greeted = connection.broken = false;
  connection.sides[0] = connection.sides[1] = {};
  ++connection.generation;
  free_.push_back(number);
}

// ---- pauses and crashes -----------------------------------------------------------------------

void Network::kick(std::uint32_t number, std::uint8_t side, Nanos after) {
  Direction& direction = connections_[number].to[side];
  if (direction.queue.empty()) return;
  arm(number, side, std::max(direction.queue.front().arrival, world_.now() + after));
}

void Network::resumed(Process& process) {
  const Address address = address_of(process);
  for (std::uint32_t i = 0; i < connections_.size(); ++i) {
    for (const std::uint8_t side : {std::uint8_t{0}, std::uint8_t{1}}) {
      if (!connections_[i].in_use || connections_[i].sides[side].address != address) continue;
      kick(i, side, Nanos{0});
    }
  }
}

void Network::crashed(Process& process, Crash crash) {
  const Address address = address_of(process);
  for (std::uint32_t i = 0; i < connections_.size(); ++i) {
    for (const std::uint8_t side : {std::uint8_t{0}, std::uint8_t{1}}) {
      Connection& connection = connections_[i];
      if (!connection.in_use || connection.sides[side].address != address) continue;
      const bool was_known = connection.sides[side].handler != nullptr || connection.greeted;
      connection.sides[side].handler = nullptr;
      if (was_known && crash == Crash::process) push(i, other(side), Kind::reset, {});
      kick(i, side, Nanos{0});
      free_if_done(i);
    }
  }
}

// ---- faults -----------------------------------------------------------------------------------

void Network::cut(Address from, Address to) {
  world_.note("cut");
  link(from, to).is_cut = true;
}

void Network::heal(Address from, Address to) {
  if (!std::exchange(link(from, to).is_cut, false)) return;
  world_.note("heal");
  kick_path(from, to);
}

// As senders try again at intervals, what waited does not come at once.
void Network::kick_path(Address from, Address to) {
  const Path& path = link(from, to).path;
  for (std::uint32_t i = 0; i < connections_.size(); ++i) {
    for (const std::uint8_t side : {std::uint8_t{0}, std::uint8_t{1}}) {
      const Connection& connection = connections_[i];
      const bool concerned = connection.in_use && connection.sides[side].address == to &&
                             connection.sides[other(side)].address == from &&
                             !connection.to[side].queue.empty();
      if (concerned) kick(i, side, path.delay + faults_.time_below(path.retransmit));
    }
  }
}

void Network::partition(std::span<const Address> group) {
  const auto is_inside = [&](Address address) {
    return std::find(group.begin(), group.end(), address) != group.end();
  };
  for (Address from = 0; from < hosts_.size(); ++from) {
    for (Address to = 0; to < hosts_.size(); ++to) {
      if (is_inside(from) != is_inside(to)) cut(from, to);
    }
  }
}

void Network::heal_all() {
  for (Address from = 0; from < hosts_.size(); ++from) {
    for (Address to = 0; to < hosts_.size(); ++to) heal(from, to);
  }
}

void Network::stall(Address from, Address to, Nanos time) {
  world_.note("stall");
  Link& path = link(from, to);
  path.stalled_until = std::max(path.stalled_until, world_.now() + time);
}

void Network::break_connection(std::uint32_t number) {
  Connection& connection = connections_[number];
  if (std::exchange(connection.broken, true)) return;
  ++counts_.resets;
  world_.note("reset");
  for (const std::uint8_t side : {std::uint8_t{0}, std::uint8_t{1}}) {
    Direction& direction = connection.to[side];
    const auto spared = faults_.below(direction.queue.size() + 1);
    while (direction.queue.size() > spared) direction.queue.pop_back();
    direction.has_ended = false;
    push(number, side, Kind::reset, {});
    kick(number, side, Nanos{0});
  }
}

void Network::reset(Socket socket) {
  if (find(socket) != nullptr) break_connection(socket.connection);
}

std::size_t Network::reset_between(Address a, Address b) {
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < connections_.size(); ++i) {
    const Connection& connection = connections_[i];
    const auto [from, to] = std::pair{connection.sides[0].address, connection.sides[1].address};
    if (!connection.in_use || connection.broken) continue;
    if ((from != a || to != b) && (from != b || to != a)) continue;
    break_connection(i);
    ++count;
  }
  return count;
}

// ---- datagrams --------------------------------------------------------------------------------

void Network::send_datagram(Address from, Address to, std::string_view message) {
  const Link& path = link(from, to);
  ++counts_.datagrams;
  // Drawn in any case, so that one fault does not shift the next.
  const bool lost = faults_.happens(path.path.loss_ppm);
  const bool twice = faults_.happens(path.path.duplicate_ppm);
  for (int copy = 0; copy < (twice ? 2 : 1); ++copy) {
    const Nanos time = transit(path);
    if (lost) continue;
    world_.after(
        time, [this, from, to, text = std::string{message}] { deliver_datagram(from, to, text); });
  }
  if (lost) ++counts_.lost_datagrams;
}

void Network::deliver_datagram(Address from, Address to, const std::string& message) {
  const Link& path = link(from, to);
  const Host& host = hosts_[to];
  if (path.is_cut || !host.process->is_alive() || host.datagrams == nullptr) {
    ++counts_.lost_datagrams;
    return;
  }
  if (path.stalled_until > world_.now()) {
    world_.at(path.stalled_until,
              [this, from, to, text = message] { deliver_datagram(from, to, text); });
    return;
  }
  // A timer of the process: runs after a pause, and is dropped by a crash.
  host.process->after(Nanos{0}, [this, from, to, text = message] {
    world_.note(text);
    hosts_[to].datagrams->received(from, text);
  });
}

}  // namespace sluice::sim
