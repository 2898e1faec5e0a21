// The network between simulated processes: connections, datagrams, and what goes wrong with them.
//
// A connection behaves like TCP. What is sent arrives once and in order, or the connection breaks;
// how much arrived before that, the sender does not learn. Messages keep their boundaries. A
// datagram arrives once, twice or never, in any order.
//
// Every direction between two processes is a path of its own. What a fault does:
//
//   fault               connections                           datagrams
//   delay, jitter       each message; order is kept           each; they overtake one another
//   loss                the message and those after it come   lost
//                       `retransmit` later
//   duplicate           never                                 arrives a second time, on its own
//   stall               arrive when the stall ends            the same
//   cut                 wait; come up to `retransmit` after   lost
//                       it heals
//   reset               some of what is in flight arrives,    not concerned
//                       the rest is lost; both ends are told,
//                       each by way of its path
//   receiver pauses     wait; the kernel goes on accepting    wait
//   process crashes     what it sent arrives, then its peers  lost
//                       are reset
//   machine crashes     what it sent arrives, then silence;   lost
//                       once it is back, it resets what it
//                       does not know
//
// So a call that was sent again by way of a new connection may arrive before the first one, after
// it, or both may arrive.
#pragma once

#include "sim/process.h"
#include "sim/random.h"
#include "sim/world.h"
#include <sluice/time.h>

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::sim {

// A process's address.
using Address = std::uint32_t;

// One end of one connection. Stays valid as a value: calls about a connection that is gone do
// nothing.
struct Socket {
  std::uint32_t connection = 0;
  std::uint32_t generation = 0;  // 0: none
  std::uint8_t side = 0;         // 0: the one that connected

  friend bool operator==(const Socket&, const Socket&) = default;
};

enum class Closed : std::uint8_t {
  by_peer,  // after everything that the peer had sent
  reset,    // what was in flight is lost, or not
  refused,  // no process listens there
};

// What becomes of a connection. Called only while the process runs. Outlives the connection, or
// closes it.
class ConnectionHandler {
 public:
  ConnectionHandler() = default;
  ConnectionHandler(const ConnectionHandler&) = delete;
  ConnectionHandler& operator=(const ConnectionHandler&) = delete;
  virtual ~ConnectionHandler() = default;

  // From here on messages arrive. Of a connection that was accepted, right after that.
  virtual void opened(Socket) {}
  virtual void received(Socket socket, std::string_view message) = 0;
  // The last call about this socket.
  virtual void closed(Socket socket, Closed how) = 0;
};

class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;

  // The handler of the new connection; null resets it.
  virtual ConnectionHandler* accepted(Socket socket, Address from) = 0;
};

class DatagramHandler {
 public:
  DatagramHandler() = default;
  DatagramHandler(const DatagramHandler&) = delete;
  DatagramHandler& operator=(const DatagramHandler&) = delete;
  virtual ~DatagramHandler() = default;

  virtual void received(Address from, std::string_view message) = 0;
};

// One direction between two processes.
struct Path {
  Nanos delay = std::chrono::microseconds{100};  // at least
  Nanos jitter = std::chrono::microseconds{50};  // more, uniform below this
  std::uint32_t loss_ppm = 0;
  std::uint32_t duplicate_ppm = 0;
  Nanos retransmit = std::chrono::milliseconds{200};
};

// One thread. Processes, handlers and the world outlive it.
class Network final : private Process::Observer {
 public:
  explicit Network(World& world);

  Address add(Process& process);
  [[nodiscard]] Process& process(Address address) { return *hosts_.at(address).process; }
  [[nodiscard]] std::size_t size() const noexcept { return hosts_.size(); }

  // ---- connections ----------------------------------------------------------------------------

  void listen(Address at, Listener& listener) { hosts_.at(at).listener = &listener; }
  // Messages may be sent right away. A connection that nothing answers stays as it is: the caller
  // has a timeout of its own.
  Socket connect(Address from, Address to, ConnectionHandler& handler);
  // Copies the message.
  void send(Socket socket, std::string_view message);
  // Sends an end after what was sent. The handler is not called any more.
  void close(Socket socket);
  [[nodiscard]] bool is_open(Socket socket) const noexcept;

  // ---- datagrams ------------------------------------------------------------------------------

  void receive_datagrams(Address at, DatagramHandler& handler) {
    hosts_.at(at).datagrams = &handler;
  }
  void send_datagram(Address from, Address to, std::string_view message);

  // ---- faults ---------------------------------------------------------------------------------

  // What holds for messages sent from now on; a new pair has `usual`.
  [[nodiscard]] Path& path(Address from, Address to) { return link(from, to).path; }
  [[nodiscard]] Path& usual() noexcept { return usual_; }

  // One way.
  void cut(Address from, Address to);
  void heal(Address from, Address to);
  // Both ways between this group and all others.
  void partition(std::span<const Address> group);
  void heal_all();
  // Nothing arrives for this long.
  void stall(Address from, Address to, Nanos time);
  // The connection breaks.
  void reset(Socket socket);
  // All connections between two processes break; how many did.
  std::size_t reset_between(Address a, Address b);

  // For summaries of a run.
  struct Counts {
    std::uint64_t connections = 0;
    std::uint64_t messages = 0;
    std::uint64_t resets = 0;
    std::uint64_t datagrams = 0;
    std::uint64_t lost_datagrams = 0;
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  enum class Kind : std::uint8_t { open, opened, data, end, reset, refused };

  struct Segment {
    WorldTime arrival{};
    Kind kind = Kind::data;
    std::string bytes;
  };
  // What is on its way to one side. It arrives in this order: what is quicker waits for those
  // ahead.
  struct Direction {
    std::deque<Segment> queue;
    World::Timer timer;
    bool is_armed = false;
    bool has_ended = false;  // an end or a reset was sent; no more can follow
  };
  struct Side {
    Address address = 0;
    ConnectionHandler* handler = nullptr;  // null: closed, or not accepted yet
  };
  struct Connection {
    std::uint32_t generation = 1;
    bool in_use = false;
    bool greeted = false;  // the listener's kernel has answered
    bool broken = false;   // by a reset that not both sides know of
    Side sides[2];
    Direction to[2];
  };
  struct Link {
    Path path;
    bool is_cut = false;
    WorldTime stalled_until{};
  };
  struct Host {
    Process* process = nullptr;
    Listener* listener = nullptr;
    DatagramHandler* datagrams = nullptr;
  };

  void resumed(Process& process) override;
  void crashed(Process& process, Crash crash) override;

  [[nodiscard]] Link& link(Address from, Address to);
  [[nodiscard]] const Connection* find(Socket socket) const noexcept;
  [[nodiscard]] Address address_of(const Process& process) const;
  [[nodiscard]] Nanos transit(const Link& link);
  void push(std::uint32_t number, std::uint8_t side, Kind kind, std::string_view bytes);
  void arm(std::uint32_t number, std::uint8_t side, WorldTime when);
  void drain(std::uint32_t number, std::uint8_t side);
  // Whether the first segment may be handed over now; arms the direction if time will tell.
  [[nodiscard]] bool is_deliverable(std::uint32_t number, std::uint8_t side);
  void deliver(std::uint32_t number, std::uint8_t side, const Segment& segment);
  void deliver_open(std::uint32_t number);
  void close_side(std::uint32_t number, std::uint8_t side, Closed how);
  void reply_reset(std::uint32_t number, std::uint8_t side, Kind kind);
  void greet(std::uint32_t number);
  void free_if_done(std::uint32_t number);
  void kick(std::uint32_t number, std::uint8_t side, Nanos after);
  void kick_path(Address from, Address to);
  void break_connection(std::uint32_t number);
  void deliver_datagram(Address from, Address to, const std::string& message);

  World& world_;
  Stream random_;  // delays
  Stream faults_;  // losses, duplicates, what a reset spares
  Path usual_;
  std::vector<Host> hosts_;
  std::map<std::pair<Address, Address>, Link> links_;
  std::deque<Connection> connections_;  // in place while handlers connect
  std::vector<std::uint32_t> free_;
  std::vector<std::string> spare_;  // buffers of delivered messages
  Counts counts_;
};

}  // namespace sluice::sim
