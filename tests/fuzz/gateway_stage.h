// Where inputs of the gateway's fuzz target are played: what lasts from one input to the next.
//
// Making it takes longer than playing an input, so it is made once. The clock stands still unless
// somebody moves it, and moves on between inputs until every limit has forgotten the last one.
#pragma once

#include "../support/store_behind.h"
#include "../support/temp_folder.h"
#include "engine/decider.h"
#include "frontend/gateway/gateway_options.h"
#include "identity/identifier.h"
#include "net/event_loop.h"
#include "net/listen.h"
#include "net/resolver.h"
#include "store/local/local_authority.h"
#include "store/local/local_store.h"
#include <sluice/clock.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>

namespace sluice::fuzz {

// How a gateway is set up, as one byte of an input chooses.
struct Variant {
  explicit Variant(std::uint8_t all) noexcept : bits(all) {}
  std::uint8_t bits;

  [[nodiscard]] bool announced() const noexcept { return (bits & 1U) != 0; }  // PROXY protocol
  [[nodiscard]] bool small_bodies() const noexcept { return (bits & 2U) != 0; }
  [[nodiscard]] bool generate_traces() const noexcept { return (bits & 4U) != 0; }
  [[nodiscard]] gateway::ForwardedHeaders forwarded() const noexcept {
    return static_cast<gateway::ForwardedHeaders>(bits >> 3U & 3U);
  }
  [[nodiscard]] bool trusts_ids() const noexcept { return (bits & 32U) != 0; }
  [[nodiscard]] bool crowded() const noexcept { return (bits & 64U) != 0; }  // few of everything
  [[nodiscard]] bool trusted_clients() const noexcept { return (bits & 128U) != 0; }
};

// The table, which also can keep askers waiting, or fail them.
class FickleStore final : public testing::StoreBehind {
 public:
  using StoreBehind::StoreBehind;

  bool answers_later = false;
  // All that wait.
  void answer(bool fails, Now now) noexcept;

  [[nodiscard]] store::Completion decide_all(store::Call& call, Now now) noexcept override;
  void cancel(store::Call& call, Now now) noexcept override;

 private:
  void fail(store::Call& call) noexcept;

  std::deque<store::Call*> waiting_;
  unsigned failed_ = 0;
};

struct Stage {
  Stage();

  [[nodiscard]] const std::shared_ptr<const gateway::GatewayOptions>& options(Variant variant);
  // Other rules of the same words, for requests from now on.
  void swap_rules();
  // No op holds on to rules, and no place in a queue or in flight is taken.
  void expect_at_rest();
  void expect_no_lease();
  // Long enough for all limits to forget.
  void forget();

  testing::TempFolder folder;
  std::array<net::Listener, 2> listeners;  // of the servers
  std::shared_ptr<const net::TlsClient> tls;
  std::array<std::shared_ptr<const gateway::GatewayOptions>, 256> made;
  ManualClock clock{{.mono = MonoTime{std::chrono::hours{1}},
                     .wall_offset = std::chrono::seconds{1'700'000'000}}};
  std::unique_ptr<net::EventLoop> loop = net::EventLoop::create(clock).value();
  net::Resolver resolver;
  std::unique_ptr<store::LocalStore> table;
  store::LocalLimits limits{*table};
  store::LocalAuthority local{*table, 1};
  FickleStore store{local};
  engine::Decider worker{store, limits};
  // In use, and for the next edit.
  std::array<std::shared_ptr<const engine::Snapshot>, 2> snapshots;
  std::array<engine::Op, 2> probes;  // as many as the rule `at-once` lets be in flight
};

}  // namespace sluice::fuzz
