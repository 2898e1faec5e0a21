// A node: the engine with its store, as a process that may pause or crash.
//
// Decider, shared store, local table, authority and functions are the product's own; what carries
// the bytes is a Wire, and what drives the worker's loop are the events of its process, on its own
// clock. A crash loses all of it, and a restart begins a new session.
#pragma once

#include "engine/decider.h"
#include "identity/identifier.h"
#include "sim/defects.h"
#include "sim/drawn.h"
#include "sim/ledger.h"
#include "sim/observers.h"
#include "sim/wire.h"
#include "store/local/local_store.h"
#include "store/redis/redis_authority.h"
#include "store/shared/shared_limits.h"
#include "store/shared/shared_store.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace sluice::sim {

// One thread. The world, the network and the ledger outlive it.
class Node final : private Process::Observer {
 public:
  static constexpr Nanos kBudget = std::chrono::milliseconds{20};

  struct Settings {
    std::uint32_t number = 0;
    std::uint32_t nodes = 1;  // how many share the limits
    NodeClock::Start clock;
    Defect defect = Defect::none;
    const store::FunctionLibrary* library = nullptr;
    const DrawnRules* rules = nullptr;
    std::uint64_t seed = 0;
  };
  Node(World& world, Network& network, Ledger& ledger, const Settings& settings);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() override;

  [[nodiscard]] Process& process() noexcept { return process_; }
  [[nodiscard]] Address address() const noexcept { return address_; }
  [[nodiscard]] Incarnation id() const noexcept {
    return {.node = settings_.number, .number = process_.incarnation()};
  }

  void start(Address server);
  void crash(Crash crash);
  void restart(Address server);
  void change_server(Address server);
  // Publishes an edition of the rules.
  void use_edition(std::size_t edition);

  // What became of a request, for clients that want to know.
  struct Result {
    bool was_admitted = false;
    store::Source source = store::Source::local;
    std::optional<Nanos> retry_after;
    std::string_view rule;  // that binds
  };
  using Told = void (*)(void* context, const Result& result);
  // A request arrives. False: no process listens here.
  bool request(const DrawnRequest& request, std::uint64_t number, Told told = nullptr,
               void* context = nullptr);

  // ---- at quiet ---------------------------------------------------------------------------------

  // Nothing is in flight and nothing waits: a violation otherwise.
  void check_idle();
  [[nodiscard]] Ledger::Dropped dropped() const;
  [[nodiscard]] store::RedisAuthority& authority() noexcept { return life_->authority; }

 private:
  // A request from its arrival to its end.
  struct Client {
    engine::Op op;
    Node* node = nullptr;
    std::uint32_t place = 0;
    std::uint32_t use = 0;  // an event of an earlier use finds nothing
    bool is_taken = false;
    bool is_passed = false;
    std::uint64_t number = 0;
    DrawnRequest request;
    Told told = nullptr;
    void* context = nullptr;
  };

  // All that a crash loses.
  struct Life {
    Life(Node& node, Incarnation id);
    ~Life();

    Wire wire;
    DefectiveTransport transport;
    std::unique_ptr<store::LocalStore> table;
    store::SharedLimits limits;
    store::RedisAuthority authority;
    ObservedAuthority observed_authority;
    DefectiveAuthority defective_authority;
    store::SharedStore shared;
    DefectiveStore defective_store;
    ObservedStore store;
    engine::Decider decider;
    std::shared_ptr<const engine::Snapshot> snapshot;
    std::deque<Client> clients;  // in place
    std::vector<std::uint32_t> free;
    Process::Timer wake;
    MonoTime wake_at = MonoTime::max();
    std::uint32_t turns_in_place = 0;
    MonoTime last_turn;
  };

  void resumed(Process& process) override;
  void crashed(Process& process, Crash crash) override;

  [[nodiscard]] Now now() noexcept { return process_.clock().now(); }
  void arrive(const DrawnRequest& request, std::uint64_t number, Told told, void* context);
  void decided(Client& client);
  void respond(Client& client);
  void leave(Client& client);
  void renew(Client& client);
  void end(Client& client);
  template <class Do>
  void later(Client& client, Nanos delay, Do&& act);
  void turn();
  void arm();

  World& world_;
  Network& network_;
  Ledger& ledger_;
  Settings settings_;
  Process process_;
  Address address_;
  Stream random_;
  MonoTime resumed_at_;
  std::size_t edition_ = 0;
  std::shared_ptr<const identity::Identifier> identifier_;
  std::unique_ptr<Life> life_;
};

}  // namespace sluice::sim
