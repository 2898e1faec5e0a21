// A simulated Redis as a process in the network: clients, replicas, pauses, crashes, failover.
//
// Speaks RESP2 over connections; a message has one or more whole commands, and gets one message
// with as many replies. Commands run one after the other, each after its service time; a command
// that a crash catches before that was not executed. Replicas copy everything when they connect and
// then follow, as late as the path to them is; what had not reached a replica when it is promoted
// is lost, as in Redis. A primary does not learn that it was replaced: until replicate_from() it
// goes on as one (a zombie).
#pragma once

#include "sim/network.h"
#include "sim/process.h"
#include "sim/redis_server.h"
#include "sim/world.h"
#include <sluice/time.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::sim {

// What is told of every command that a server has executed.
class RedisObserver {
 public:
  RedisObserver() = default;
  RedisObserver(const RedisObserver&) = delete;
  RedisObserver& operator=(const RedisObserver&) = delete;
  virtual ~RedisObserver() = default;

  // Commands of one connection come in their order. `wall` is the server's clock.
  virtual void executed(Address server, Socket client, Words command, const Reply& reply,
                        WallTime wall) = 0;
};

// One thread. World and network outlive it, and it outlives all events.
class RedisNode final : private Listener {
 public:
  struct Settings {
    NodeClock::Start clock;
    Nanos service = std::chrono::microseconds{15};  // per command
    Nanos reconnect = std::chrono::seconds{1};      // of a replica that lost its primary
  };

  RedisNode(World& world, Network& network, std::string name, const Settings& settings);
  RedisNode(const RedisNode&) = delete;
  RedisNode& operator=(const RedisNode&) = delete;
  ~RedisNode() override = default;

  [[nodiscard]] Address address() const noexcept { return address_; }
  [[nodiscard]] Process& process() noexcept { return process_; }
  [[nodiscard]] RedisServer& server() noexcept { return server_; }
  // One of them, which outlives the node.
  void observe(RedisObserver& observer) noexcept { observer_ = &observer; }

  // Becomes a replica of this node and closes the connections of its clients; its own data goes as
  // soon as the primary's arrive.
  void replicate_from(Address primary);
  // Becomes the primary, with what has reached it. Other replicas have to be told.
  void promote();

  enum class Restart : std::uint8_t { with_data, empty };
  // Pauses are the process's own: process().pause().
  void crash(Crash crash) { process_.crash(crash); }
  // A replica connects to its primary again.
  void restart(Restart how);

 private:
  // Of connections that clients and replicas have opened.
  struct Clients final : ConnectionHandler {
    explicit Clients(RedisNode& owner) : node(owner) {}
    void received(Socket socket, std::string_view message) override;
    void closed(Socket socket, Closed how) override;
    RedisNode& node;
  };
  // Of the connection to the primary.
  struct Upstream final : ConnectionHandler {
    explicit Upstream(RedisNode& owner) : node(owner) {}
    void received(Socket socket, std::string_view message) override;
    void closed(Socket socket, Closed how) override;
    RedisNode& node;
  };
  struct Request {
    Socket from;
    std::string message;
  };
  struct Crashes final : Process::Observer {
    explicit Crashes(RedisNode& owner) : node(owner) {}
    void resumed(Process&) override {}
    void crashed(Process&, Crash) override;
    RedisNode& node;
  };

  ConnectionHandler* accepted(Socket socket, Address from) override;
  void enqueue(Socket from, std::string_view message);
  void serve();
  void send_snapshot(Socket to);
  void send_to_replicas(const Effects& effects);
  void connect_upstream();
  void follow(std::string_view message);

  Network& network_;
  Process process_;
  Address address_;
  Settings settings_;
  RedisServer server_;
  RedisObserver* observer_ = nullptr;
  Clients clients_handler_{*this};
  Upstream upstream_handler_{*this};
  Crashes crashes_{*this};
  std::vector<Socket> clients_;
  std::vector<Socket> replicas_;  // some of the clients
  std::deque<Request> queue_;
  MonoTime busy_until_{};
  bool follows_ = false;
  Address primary_ = 0;
  Socket upstream_;
  Process::Timer reconnect_;
  std::string buffer_;
};

}  // namespace sluice::sim
