// A node's connection to the simulated Redis: the transport of the store, over the virtual network.
//
// Keeps one connection. One that breaks, or has nothing to say for kSilence although a reply is
// awaited, is replaced; what was on it is reported as disconnected before anything else is taken.
//
// One thread. Dies with the node's process: after stop() nothing is taken and nothing arrives.
#pragma once

#include "sim/ledger.h"
#include "sim/network.h"
#include "sim/process.h"
#include "sim/resp.h"
#include "store/redis/transport.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace sluice::sim {

class Wire final : public store::Transport, private ConnectionHandler {
 public:
  static constexpr Nanos kReconnect = std::chrono::milliseconds{50};
  static constexpr Nanos kSilence = std::chrono::milliseconds{1'500};

  struct Place {
    Process& process;
    Network& network;
    Ledger& ledger;
    Address self = 0;
    Incarnation node;
  };
  // `arrived` is called when there is something to receive.
  Wire(const Place& place, std::function<void()> arrived);
  ~Wire() override { stop(); }

  void start(Address server);
  // Another server is the primary now.
  void change_server(Address server);
  void stop();

  [[nodiscard]] bool send(std::uint64_t tag, const Digest& key,
                          std::span<const std::string_view> words) noexcept override;
  void flush() noexcept override;
  [[nodiscard]] bool receive(store::TransportReply& reply) noexcept override;
  [[nodiscard]] Now wait(MonoTime until) noexcept override;

  // What was executed for the reply that was received last.
  [[nodiscard]] std::uint32_t execution() const noexcept { return current_.execution; }

 private:
  struct Report {
    std::uint64_t tag = 0;
    store::TransportReply::Kind kind = store::TransportReply::Kind::other;
    std::vector<std::int64_t> numbers;
    std::string text;
    std::uint32_t execution = Ledger::kNone;
  };

  void opened(Socket socket) override;
  void received(Socket socket, std::string_view message) override;
  void closed(Socket socket, Closed how) override;
  void connect();
  void disconnect();
  void watch();

  Place place_;
  std::function<void()> arrived_;
  Address server_ = 0;
  bool stopped_ = true;
  bool is_open_ = false;
  Socket socket_;
  std::size_t replies_ = 0;  // on this connection
  MonoTime heard_;           // when something arrived, or was awaited first
  Process::Timer timer_;
  std::string out_;
  std::deque<std::uint64_t> awaited_;  // tags
  std::deque<Report> reports_;
  std::size_t lost_ = 0;  // of these, those that tell a loss
  Report current_;
};

}  // namespace sluice::sim
