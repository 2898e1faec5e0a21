#include "gateway_play.h"

#include "fuzz.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <poll.h>
#include <span>
#include <sys/socket.h>
#include <utility>

namespace sluice::fuzz {

using namespace std::chrono_literals;

// ---- the play ---------------------------------------------------------------------------------

Play::Play(Stage& stage, Variant variant)
    : stage_(stage),
      variant_(variant),
      gateway_(std::make_unique<gateway::Gateway>(
          gateway::Gateway::Parts{.loop = *stage.loop,
                                  .resolver = stage.resolver,
                                  .worker = stage.worker,
                                  .observer = *this,
                                  .connection_counts = connection_counts_},
          stage.options(variant))) {
  routings_.push_back(gateway_->routing());
  open_client();
}

IpAddress Play::address_of(std::size_t client) const noexcept {
  const std::uint32_t network = variant_.trusted_clients() ? 0x0a000001 : 0xc0000201;
  return IpAddress::v4(network + (variant_.crowded() ? 0 : static_cast<std::uint32_t>(client)));
}

bool Play::knows_clients() const noexcept {
  return clients_.size() == 1 ||
         !(variant_.announced() || variant_.trusted_clients() || variant_.crowded());
}

void Play::open_client() {
  if (gateway_ == nullptr || clients_.size() == kClientsMax) return;
  Connected made = connect_player();
  client_ = clients_.size();
  clients_.push_back(std::make_unique<Player>(std::move(made.player)));
  gateway_->accept(
      {.descriptor = std::move(made.other), .peer = {.address = address_of(client_), .port = 4000}},
      {.port = 8080, .proxy_protocol = variant_.announced()});
}

void Play::next_client() noexcept { client_ = (client_ + 1) % clients_.size(); }

void Play::next_server() noexcept { ++server_; }

Player* Play::server() noexcept {
  return servers_.empty() ? nullptr : servers_[server_ % servers_.size()].get();
}

void Play::pass(Nanos time) {
  stage_.clock.advance(time);
  settle();
}

void Play::reload(Variant variant) {
  stage_.swap_rules();
  if (gateway_ == nullptr) return;
  gateway_->use(stage_.options(variant));
  routings_.push_back(gateway_->routing());
}

void Play::drain() {
  if (gateway_ != nullptr) gateway_->drain();
}

void Play::stop() {
  gateway_ = nullptr;
  settle();
}

// The newest connection is the one to be played on.
void Play::accept_servers() {
  for (const net::Listener& listener : stage_.listeners) {
    while (true) {
      FileDescriptor descriptor{
          ::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
      if (!descriptor) break;
      auto player = std::make_unique<Player>();
      player->descriptor = std::move(descriptor);
      server_ = servers_.size();
      servers_.push_back(std::move(player));
    }
  }
}

bool Play::hear_all() {
  std::vector<pollfd> ears;
  std::vector<Player*> players;
  for (const net::Listener& listener : stage_.listeners) {
    ears.push_back({.fd = listener.descriptor(), .events = POLLIN, .revents = 0});
  }
  for (const auto* all : {&clients_, &servers_}) {
    for (const auto& player : *all) {
      if (!player->is_open() || !player->listens || player->heard_end) continue;
      ears.push_back({.fd = player->descriptor.get(), .events = POLLIN, .revents = 0});
      players.push_back(player.get());
    }
  }
  if (::poll(ears.data(), ears.size(), 0) <= 0) return false;
  const std::size_t listeners = stage_.listeners.size();
  for (std::size_t i = 0; i < players.size(); ++i) {
    if (ears[listeners + i].revents != 0) (void)players[i]->hear();
  }
  const auto called = [](const pollfd& ear) { return ear.revents != 0; };
  if (std::ranges::any_of(std::span{ears}.first(listeners), called)) accept_servers();
  return true;
}

// Twice silence: in between the gateway may have gone on with what it had put off.
void Play::settle() {
  for (int silent = 0; silent < 2;) {
    stage_.loop->turn(Nanos{0});
    silent = hear_all() || stage_.loop->has_tasks() ? 0 : silent + 1;
  }
}

void Play::ended(const frontend::AccessRecord& record, Now /*now*/) noexcept {
  ended_.push_back({.client = record.ip,
                    .method = std::string{record.method},
                    .target = std::string{record.target},
                    .id = std::string{record.request_id},
                    .status = record.status,
                    .server_status = record.upstream.status,
                    .retries = record.upstream.retries});
}

// ---- the end ----------------------------------------------------------------------------------

void Play::end() {
  for (const auto& player : clients_) player->leave();
  settle();
  for (const auto& player : servers_) player->listens = true;
  settle();
  for (const auto& player : servers_) player->leave();
  settle();
  if (gateway_ != nullptr) expect_nothing_left();
  gateway_ = nullptr;
  expect(routings_.back().expired(), "nothing is left of a gateway");
}

// The time is for those who wait for something else than their client.
void Play::expect_nothing_left() {
  for (int i = 0; i < 4 && gateway_->connections() > 0; ++i) pass(31s);
  expect(gateway_->connections() == 0, "no connection outlives its client");
  expect(gateway_->in_flight() == 0, "every request ends");
  expect(gateway_->queued() == 0, "nobody is held for ever");
  for (const auto& routing : routings_) {
    expect(routing.expired() || routing.lock() == gateway_->routing(),
           "nothing holds on to options that are no longer in use");
  }
  for (const auto& group : gateway_->routing()->groups) {
    for (const auto& server : group->servers()) {
      expect(server->in_use() == 0, "every connection to a server is given back");
      expect(server->idle() == 0, "no connection outlives its server");
    }
  }
}

}  // namespace sluice::fuzz
