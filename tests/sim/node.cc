#include "sim/node.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace sluice::sim {
namespace {

using store::Completion;

// The cluster's secret, which lives in Redis in the product. A fixed one here: keys are part of the
// history.
constexpr DigestSecret kSecret{.first = 0x736c'7569'6365'0001, .second = 0x736c'7569'6365'0002};

std::unique_ptr<store::LocalStore> new_table(Now now) {
  auto made = store::LocalStore::open({.mapping = {.memory = store::Mapping::kMemoryMin}}, now);
  if (!made) throw std::runtime_error{made.error().text()};
  return *std::move(made);
}

}  // namespace

// ---- a process ----------------------------------------------------------------------------------

Node::Life::Life(Node& node, Incarnation id)
    : wire({.process = node.process_,
            .network = node.network_,
            .ledger = node.ledger_,
            .self = node.address_,
            .node = id},
           [&node] { node.turn(); }),
      transport(wire, node.process_, node.settings_.defect),
      table(new_table(node.now())),
      limits(*table, &store::RedisLimit::compile,
             node.settings_.defect == Defect::share_is_limit ? 1 : node.settings_.nodes),
      authority(transport, *node.settings_.library,
                {.session = (std::uint64_t{id.node} + 1) << 32U | id.number,
                 .calls_max = 1024,
                 .numbered_max = 512}),
      observed_authority(authority, node.ledger_, id, [this] { return wire.execution(); }),
      defective_authority(observed_authority, node.settings_.defect),
      shared(*table, limits, defective_authority,
             {.budget = kBudget,
              .seed = node.random_.generator()(),
              .calls_max = 256,
              .groups_max = 1024,
              .holdings_max = 512,
              .settlements_max = 1024,
              .denied_max = 128}),
      defective_store(shared, defective_authority, node.settings_.defect),
      store(defective_store, {.id = id,
                              .limits = limits,
                              .ledger = node.ledger_,
                              .budget = kBudget,
                              .now = [&node] { return node.now(); },
                              .resumed = [&node] { return node.resumed_at_; }}),
      decider(store, limits) {
  limits.set_shared_secret(kSecret);
  decider.use(node.identifier_);
}

// As by a crash: what is still to be given back is lost with the process. The engine insists on an
// end of each request, but nobody hears of it.
Node::Life::~Life() {
  store.close_eyes();
  observed_authority.close_eyes();
  wire.stop();
  for (Client& client : clients) {
    if (client.is_taken) decider.abandon(client.op, client.node->now());
  }
}

Node::Node(World& world, Network& network, Ledger& ledger, const Settings& settings)
    : world_(world),
      network_(network),
      ledger_(ledger),
      settings_(settings),
      process_(world, fmt::format("node-{}", settings.number), settings.clock),
      address_(network.add(process_)),
      random_(world.random(fmt::format("node-{}", settings.number))),
      identifier_(identity::Identifier::create(identity::IdentifierConfig{}).value()) {
  process_.observe(*this);
}

Node::~Node() = default;

void Node::start(Address server) {
  life_ = std::make_unique<Life>(*this, id());
  use_edition(edition_);
  life_->wire.start(server);
}

void Node::crash(Crash crash) {
  ledger_.crashed(id());
  process_.crash(crash);
}

void Node::restart(Address server) {
  process_.restart();
  resumed_at_ = now().mono;
  start(server);
}

void Node::crashed(Process&, Crash) { life_.reset(); }
void Node::resumed(Process&) { resumed_at_ = now().mono; }

void Node::change_server(Address server) {
  if (life_ != nullptr) life_->wire.change_server(server);
}

void Node::use_edition(std::size_t edition) {
  edition_ = edition;
  if (life_ == nullptr) return;
  auto set = std::make_shared<const rules::RuleSet>(
      rules::RuleList{.rules = settings_.rules->editions.at(edition)});
  auto made = engine::Snapshot::make(std::move(set), settings_.rules->overrides, life_->limits,
                                     now(), life_->snapshot.get());
  if (!made) throw std::runtime_error{made.error().text()};
  life_->snapshot = *made;
  life_->decider.use(*std::move(made));
}

// ---- requests -----------------------------------------------------------------------------------

bool Node::request(const DrawnRequest& request, std::uint64_t number, Told told, void* context) {
  if (!process_.is_alive()) return false;
  if (process_.is_running()) {
    arrive(request, number, told, context);
    return true;
  }
  // The kernel keeps it until the process reads again.
  auto kept = std::make_shared<DrawnRequest>(request);
  process_.after(Nanos{0}, [this, kept = std::move(kept), number, told, context] {
    arrive(*kept, number, told, context);
  });
  return true;
}

// Something that the process does for a client some time later, if the client is still there.
template <class Do>
void Node::later(Client& client, Nanos delay, Do&& act) {
  process_.after(delay, [this, place = client.place, use = client.use, act] {
    Client& same = life_->clients[place];
    if (!same.is_taken || same.use != use) return;
    ledger_.acting_for(same.number);
    act(*this, same);
    turn();
  });
}

void Node::arrive(const DrawnRequest& request, std::uint64_t number, Told told, void* context) {
  Life& life = *life_;
  if (life.free.empty()) {
    life.free.push_back(static_cast<std::uint32_t>(life.clients.size()));
    life.clients.emplace_back();
  }
  const std::uint32_t place = life.free.back();
  life.free.pop_back();
  Client& client = life.clients[place];
  client.node = this;
  client.place = place;
  ++client.use;
  client.is_taken = true;
  client.is_passed = false;
  client.number = number;
  client.request = request;
  client.told = told;
  client.context = context;
  client.op.owner = &client;
  client.op.completed = [](engine::Op& op) noexcept {
    Client& of_op = *static_cast<Client*>(op.owner);
    of_op.node->decided(of_op);
  };

  const std::array headers{HeaderView{.name = "x-cost", .value = client.request.cost}};
  const RequestView view{.method = "GET",
                         .host = "api.example.com",
                         .target = client.request.path,
                         .headers = headers,
                         .peer = *IpAddress::parse("192.0.2.1"),
                         .tls_subject = {},
                         .domain = {},
                         .descriptor = {}};
  identity::Identity who;
  who.address = view.peer;
  who.user = client.request.user;
  who.tenant = client.request.tenant;
  who.tier = client.request.tier;
  who.proof = identity::Proof::good;
  ledger_.acting_for(number);
  if (life.decider.decide(client.op, view, who, now()).completion == Completion::now) {
    decided(client);
  } else if (client.request.leaves_after > Nanos{0}) {
    later(client, client.request.leaves_after, [](Node& node, Client& gone) {
      if (gone.op.waiting()) node.leave(gone);
    });
  }
  turn();
}

void Node::decided(Client& client) {
  const engine::Op& op = client.op;
  world_.note(static_cast<std::uint64_t>(op.action) << 8U | static_cast<std::uint64_t>(op.reason));
  client.is_passed = op.action == engine::Action::pass;
  if (client.told != nullptr) {
    client.told(client.context, {.was_admitted = client.is_passed,
                                 .source = op.source,
                                 .retry_after = op.decision.retry_after,
                                 .rule = op.rule != nullptr ? std::string_view{op.rule->name}
                                                            : std::string_view{}});
  }
  if (!client.is_passed) {
    life_->decider.settle(client.op, nullptr, now());
    return end(client);
  }
  const DrawnRequest& request = client.request;
  const bool is_queued = op.decision.delay > Nanos{0};
  if (is_queued && request.leaves_after > Nanos{0}) {
    return later(client, op.decision.delay / 2, [](Node& node, Client& gone) { node.leave(gone); });
  }
  if (is_queued) {
    later(client, op.decision.delay,
          [](Node& node, Client& same) { node.life_->decider.released(same.op); });
  }
  if (request.corrected_cost > 0) {
    later(client, op.decision.delay + request.takes / 2, [](Node& node, Client& same) {
      node.life_->decider.correct_cost(same.op, same.request.corrected_cost, node.now());
    });
  }
  if (op.renew_every() > Nanos{0} && op.renew_every() < request.takes) renew(client);
  later(client, op.decision.delay + request.takes,
        [](Node& node, Client& same) { node.respond(same); });
}

void Node::renew(Client& client) {
  const Nanos every = client.op.renew_every();
  if (every == Nanos{0}) return;
  later(client, every, [](Node& node, Client& same) {
    node.life_->decider.renew(same.op, node.now());
    node.renew(same);
  });
}

void Node::respond(Client& client) {
  const engine::ResponseView response{
      .status = client.request.status, .grpc_status = {}, .headers = {}};
  life_->decider.settle(client.op, client.request.is_cut_off ? nullptr : &response, now());
  end(client);
}

void Node::leave(Client& client) {
  life_->decider.abandon(client.op, now());
  end(client);
}

void Node::end(Client& client) {
  ledger_.request_over(client.number);
  client.is_taken = false;
  life_->free.push_back(client.place);
}

// ---- the worker's loop --------------------------------------------------------------------------

void Node::turn() {
  Life& life = *life_;
  life.store.advance(now());
  arm();
}

void Node::arm() {
  Life& life = *life_;
  const MonoTime mono = now().mono;
  MonoTime at = life.store.wake_at();
  if (at <= mono) {
    // Now and then that is right; for ever it is not.
    constexpr std::uint32_t kTurnsMax = 1'000;
    life.turns_in_place =
        mono - life.last_turn < std::chrono::milliseconds{1} ? life.turns_in_place + 1 : 0;
    if (life.turns_in_place > kTurnsMax) {
      ledger_.violated("I5", fmt::format("node {} wants to be woken all the time", id().node));
    }
    at = mono + std::chrono::microseconds{1};
  }
  life.last_turn = mono;
  if (at == life.wake_at) return;
  process_.cancel(life.wake);
  life.wake_at = at;
  if (at == MonoTime::max()) return;
  life.wake = process_.at(at, [this] {
    life_->wake_at = MonoTime::max();
    turn();
  });
}

// ---- at quiet -----------------------------------------------------------------------------------

void Node::check_idle() {
  const auto require = [this](std::size_t in_use, std::string_view what) {
    if (in_use == 0) return;
    ledger_.violated("I8", fmt::format("node {}: {} {} in use at quiet", id().node, in_use, what));
  };
  const store::SharedStore& shared = life_->shared;
  require(shared.calls_in_flight(), "calls");
  require(shared.groups_asked(), "groups");
  require(shared.holdings_in_use(), "holdings");
  require(shared.settlements_waiting(), "settlements");
  require(life_->authority.calls_waiting(), "calls of the authority");
  require(life_->clients.size() - life_->free.size(), "requests");
}

Ledger::Dropped Node::dropped() const {
  const store::SharedCounts& counts = life_->shared.shared_counts();
  const bool calls = life_->authority.counts().calls_dropped > 0;
  return {.refunds = counts.refunds_dropped > 0 || calls,
          .charges = counts.charges_dropped > 0 || calls,
          .settlements = counts.settlements_dropped > 0 || counts.settlements_expired > 0 || calls};
}

}  // namespace sluice::sim
