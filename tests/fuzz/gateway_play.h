// One input of the gateway's fuzz target: a gateway with clients before it and servers behind it.
//
// Whoever is not the gateway is played by the input. After every action the loop turns until
// nobody has anything more to say, so that what happens depends on the input alone.
#pragma once

#include "frontend/gateway/connection_counts.h"
#include "frontend/gateway/gateway.h"
#include "gateway_stage.h"
#include "player.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::fuzz {

// How a request ended, by the gateway's own account.
struct Ended {
  IpAddress client;
  std::string method;  // empty: what came was no request
  std::string target;
  std::string id;
  std::uint16_t status = 0;
  std::uint16_t server_status = 0;  // 0: no answer came
  std::uint32_t retries = 0;
};

class Play final : frontend::Observer {
 public:
  Play(Stage& stage, Variant variant);

  // What an input can do.
  void open_client();
  void next_client() noexcept;
  void next_server() noexcept;
  [[nodiscard]] Player& client() noexcept { return *clients_[client_]; }
  [[nodiscard]] Player* server() noexcept;  // null: nobody has connected
  void pass(Nanos time);
  void reload(Variant variant);
  void drain();
  void stop();  // in the middle of everything
  void settle();

  // Everybody leaves and time goes by: nothing may be left of anybody.
  void end();

  [[nodiscard]] bool is_announced() const noexcept { return variant_.announced(); }
  [[nodiscard]] const std::vector<std::unique_ptr<Player>>& clients() const { return clients_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Player>>& servers() const { return servers_; }
  [[nodiscard]] const std::vector<Ended>& ended() const noexcept { return ended_; }
  // Where the connection of a client comes from.
  [[nodiscard]] IpAddress address_of(std::size_t client) const noexcept;
  // Whether records tell which client they are of.
  [[nodiscard]] bool knows_clients() const noexcept;

 private:
  void ended(const frontend::AccessRecord& record, Now now) noexcept override;
  void accept_servers();
  [[nodiscard]] bool hear_all();
  void expect_nothing_left();

  static constexpr std::size_t kClientsMax = 6;

  Stage& stage_;
  const Variant variant_;  // that it began with, and by which clients come
  std::vector<std::weak_ptr<gateway::Routing>> routings_;
  gateway::ConnectionCounts connection_counts_;
  std::unique_ptr<gateway::Gateway> gateway_;
  std::vector<std::unique_ptr<Player>> clients_;
  std::vector<std::unique_ptr<Player>> servers_;
  std::size_t client_ = 0;
  std::size_t server_ = 0;
  std::vector<Ended> ended_;
};

}  // namespace sluice::fuzz
