#include "sim/run.h"

#include "sim/drawn.h"
#include "sim/node.h"
#include "store/redis/call_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

constexpr WorldTime kFaultsFrom{500ms};
constexpr WorldTime kFaultsEnd{17'500ms};
constexpr WorldTime kTrafficEnds{20s};
// 2 s after the last fault, and what timers need.
constexpr WorldTime kAliveFrom{19'600ms};
// The last requests are over by then.
constexpr WorldTime kProbesFrom{22'500ms};
constexpr WorldTime kProbesEnd{26s};
constexpr WorldTime kQuiet{33s};

class Run {
 public:
  explicit Run(const RunOptions& options);
  RunResult finish();

 private:
  enum class Fault : std::uint8_t {
    slow_path,
    stall,
    one_way_cut,
    partition,
    reset,
    node_crash,
    node_pause,
    wall_step,
    drift,
    redis_pause,
    redis_restart_with_data,
    redis_restart_empty,
    failover,
    redis_clock_step,
    faults
  };

  void set_up_servers();
  void set_up_nodes();
  void schedule_faults();
  void schedule(WorldTime when, Fault fault);
  void strike(Fault fault, Nanos lasts);
  void redis_fault(Fault fault, Nanos lasts);
  void fail_over();
  void follow_primary(std::uint32_t old);
  void send_traffic();
  void send_one();
  void probe();
  void ask_again();
  void compare_state();
  void note(std::string text);
  [[nodiscard]] Node& any_node(Stream& stream) { return *nodes_[stream.below(nodes_.size())]; }
  [[nodiscard]] RedisNode& primary() { return *servers_[primary_]; }

  RunOptions options_;
  World world_;
  Network network_;
  Stream chance_;  // of the set-up
  Stream faults_;
  Stream traffic_;
  store::FunctionLibrary library_;
  DrawnRules rules_;
  std::uint32_t node_count_;
  Ledger ledger_;
  std::vector<std::unique_ptr<RedisNode>> servers_;
  std::uint32_t primary_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::uint64_t requests_ = 0;
  Nanos between_{};
  RunResult result_;

  // The client that probes, when all else is quiet.
  struct Returning {
    std::uint32_t node = 0;
    DrawnRequest request{};
    int asked = 0;
    bool is_back = false;
    Nanos waited{0};
  };
  static void told(void* context, const Node::Result& result);
  void told(const Node::Result& result);
  Returning client_;
  std::uint64_t fresh_ = 0;
};

Run::Run(const RunOptions& options)
    : options_(options),
      world_(options.seed),
      network_(world_),
      chance_(world_.random("run")),
      faults_(world_.random("faults")),
      traffic_(world_.random("traffic")),
      library_(library_with(options.defect)),
      rules_([this] {
        Stream stream = world_.random("rules");
        return draw_rules(stream);
      }()),
      node_count_(3 + static_cast<std::uint32_t>(chance_.below(3))),
      ledger_(world_, rules_.traits, node_count_) {
  if (options.trace) ledger_.trace();
  result_.rules = described(rules_);
  set_up_servers();
  set_up_nodes();
  schedule_faults();
  // A tenth more than asked for: of requests to a node that is down, the connection is refused.
  const auto count = static_cast<std::int64_t>(options.decisions + options.decisions / 10);
  between_ = Nanos{kTrafficEnds.time_since_epoch().count() / count};
  world_.at(WorldTime{300ms}, [this] { send_traffic(); });
  world_.at(kAliveFrom, [this] { ledger_.expect_liveness(true); });
  // What is charged only after the response may come between a rejection and the return.
  const bool charges_later = std::ranges::any_of(rules_.traits, &RuleTraits::is_only_probed);
  if (!charges_later) world_.at(kProbesFrom, [this] { probe(); });
  world_.at(kProbesEnd, [this] { ledger_.expect_liveness(false); });
}

// Two servers: a primary and its replica.
void Run::set_up_servers() {
  for (const char* const name : {"redis-0", "redis-1"}) {
    RedisNode::Settings settings;
    settings.clock.wall += Nanos{chance_.between(-2'000'000'000, 2'000'000'000)};
    settings.clock.drift_ppm = chance_.between(-200, 200);
    servers_.push_back(std::make_unique<RedisNode>(world_, network_, name, settings));
    servers_.back()->observe(ledger_);
    ledger_.begin_life(servers_.back()->address(), true);
  }
  servers_[1]->replicate_from(servers_[0]->address());
}

void Run::set_up_nodes() {
  result_.nodes = node_count_;
  for (std::uint32_t number = 0; number < node_count_; ++number) {
    NodeClock::Start clock;
    clock.mono = MonoTime{Nanos{chance_.between(1, 1'000'000'000'000'000)}};
    clock.wall += Nanos{chance_.between(-60, 60)} * 1'000'000'000;
    clock.drift_ppm = chance_.between(-500, 500);
    nodes_.push_back(std::make_unique<Node>(world_, network_, ledger_,
                                            Node::Settings{.number = number,
                                                           .nodes = node_count_,
                                                           .clock = clock,
                                                           .defect = options_.defect,
                                                           .library = &library_,
                                                           .rules = &rules_,
                                                           .seed = options_.seed}));
    nodes_.back()->start(primary().address());
  }
  if (rules_.editions.size() < 2) return;
  // A rollout: the nodes take the new edition one after another.
  const WorldTime begins{chance_.time_below(12s) + 3s};
  for (auto& node : nodes_) {
    const WorldTime when = begins + chance_.time_below(2s);
    world_.at(when, [&node] { node->use_edition(1); });
  }
}

void Run::note(std::string text) { ledger_.event(std::move(text)); }

// ---- faults -------------------------------------------------------------------------------------

void Run::schedule_faults() {
  const std::uint64_t count = 5 + faults_.below(6);
  for (std::uint64_t i = 0; i < count; ++i) {
    const WorldTime when = kFaultsFrom + faults_.time_below(kFaultsEnd - kFaultsFrom - 500ms);
    const auto fault = static_cast<Fault>(faults_.below(static_cast<std::uint64_t>(Fault::faults)));
    const Nanos most = std::min<Nanos>(kFaultsEnd - when, 3s);
    const Nanos lasts = 10ms + faults_.time_below(most - 10ms);
    world_.at(when, [this, fault, lasts] { strike(fault, lasts); });
  }
  world_.at(kFaultsEnd, [this] {
    note("all faults are over");
    network_.heal_all();
    for (auto& node : nodes_) {
      if (!node->process().is_alive()) node->restart(primary().address());
      node->process().resume();
    }
    for (auto& server : servers_) server->process().resume();
  });
}

void Run::strike(Fault fault, Nanos lasts) {
  const double millis = static_cast<double>(lasts.count()) / 1e6;
  Node& node = any_node(faults_);
  const Address here = node.address();
  const Address there = primary().address();
  const bool to_server = faults_.happens(500'000);
  const Address from = to_server ? here : there;
  const Address to = to_server ? there : here;
  const auto tell = [&](std::string_view what) {
    result_.faults.push_back(fmt::format(
        "{:.3f} s: {}", static_cast<double>(world_.now().time_since_epoch().count()) / 1e9, what));
    note(std::string{what});
  };
  switch (fault) {
    case Fault::slow_path: {
      const Nanos delay = 1ms + faults_.time_below(40ms);
      tell(fmt::format("{} to {} takes {:.1f} ms for {:.0f} ms", network_.process(from).name(),
                       network_.process(to).name(), static_cast<double>(delay.count()) / 1e6,
                       millis));
      network_.path(from, to).delay = delay;
      network_.path(from, to).jitter = delay;
      network_.path(from, to).loss_ppm = 20'000;
      world_.after(lasts, [this, from, to] { network_.path(from, to) = network_.usual(); });
      break;
    }
    case Fault::stall:
      tell(fmt::format("{} to {} stalls for {:.0f} ms", network_.process(from).name(),
                       network_.process(to).name(), millis));
      network_.stall(from, to, lasts);
      break;
    case Fault::one_way_cut:
      tell(fmt::format("{} to {} is cut for {:.0f} ms", network_.process(from).name(),
                       network_.process(to).name(), millis));
      network_.cut(from, to);
      world_.after(lasts, [this, from, to] { network_.heal(from, to); });
      break;
    case Fault::partition: {
      // Some nodes lose the server.
      tell(fmt::format("a partition for {:.0f} ms", millis));
      for (auto& other : nodes_) {
        const bool is_away = &*other == &node || faults_.happens(400'000);
        if (!is_away) continue;
        const Address away = other->address();
        network_.cut(away, there);
        network_.cut(there, away);
        world_.after(lasts, [this, away, there] {
          network_.heal(away, there);
          network_.heal(there, away);
        });
      }
      break;
    }
    case Fault::reset:
      tell(fmt::format("connections of {} break", node.process().name()));
      network_.reset_between(here, there);
      break;
    case Fault::node_crash: {
      if (!node.process().is_alive()) return strike(Fault::reset, lasts);
      const Crash crash = to_server ? Crash::process : Crash::machine;
      tell(fmt::format("{} crashes for {:.0f} ms", node.process().name(), millis));
      node.crash(crash);
      world_.after(lasts, [this, &node] {
        if (!node.process().is_alive()) node.restart(primary().address());
      });
      break;
    }
    case Fault::node_pause:
      tell(fmt::format("{} pauses for {:.0f} ms", node.process().name(), millis));
      node.process().pause();
      world_.after(lasts, [&node] { node.process().resume(); });
      break;
    case Fault::wall_step: {
      const Nanos step{faults_.between(-90, 90) * 1'000'000'000};
      tell(fmt::format("the wall clock of {} steps by {} s", node.process().name(),
                       step.count() / 1'000'000'000));
      node.process().clock().step_wall(step);
      ledger_.wall_stepped(node.id().node);
      break;
    }
    case Fault::drift: {
      const std::int64_t ppm = faults_.between(-500, 500);
      tell(fmt::format("{} drifts by {} ppm", node.process().name(), ppm));
      node.process().clock().set_drift(ppm);
      break;
    }
    case Fault::redis_pause:
      tell(fmt::format("the primary pauses for {:.0f} ms", millis));
      [[fallthrough]];
    default: {
      if (!primary().process().is_running()) return strike(Fault::reset, lasts);
      if (fault == Fault::redis_restart_with_data) tell("the primary restarts with its data");
      if (fault == Fault::redis_restart_empty) tell("the primary restarts without data");
      if (fault == Fault::failover) tell("the replica is promoted");
      if (fault == Fault::redis_clock_step) tell("the primary's clock steps");
      redis_fault(fault, std::min<Nanos>(lasts, 1500ms));
    }
  }
}

void Run::redis_fault(Fault fault, Nanos lasts) {
  const std::uint32_t struck = primary_;
  RedisNode& server = primary();
  switch (fault) {
    case Fault::redis_pause:
      server.process().pause();
      world_.after(lasts, [&server] { server.process().resume(); });
      break;
    case Fault::redis_restart_with_data:
    case Fault::redis_restart_empty: {
      const bool is_empty = fault == Fault::redis_restart_empty;
      server.crash(Crash::process);
      world_.after(lasts, [this, struck, is_empty] {
        RedisNode& back = *servers_[struck];
        if (back.process().is_alive()) return;
        back.restart(is_empty ? RedisNode::Restart::empty : RedisNode::Restart::with_data);
        if (is_empty) ledger_.begin_life(back.address(), true);
        // Its replica asks for everything again.
        RedisNode& replica = *servers_[1 - struck];
        if (primary_ == struck) replica.replicate_from(back.address());
      });
      break;
    }
    case Fault::failover: fail_over(); break;
    case Fault::redis_clock_step: {
      const Nanos step{faults_.between(-2'000, 2'000) * 1'000'000};
      server.process().clock().step_wall(step);
      ledger_.begin_life(server.address(), false);
      break;
    }
    default: break;
  }
}

// The replica is as late as the path to it was. The old primary goes on for a while, and nodes
// change over one by one.
void Run::fail_over() {
  const std::uint32_t old = primary_;
  RedisNode& promoted = *servers_[1 - old];
  if (!promoted.process().is_running()) return;
  promoted.promote();
  primary_ = 1 - old;
  ledger_.begin_life(promoted.address(), false);
  for (auto& node : nodes_) {
    world_.after(faults_.time_below(500ms),
                 [this, &node] { node->change_server(primary().address()); });
  }
  world_.after(500ms, [this, old] { follow_primary(old); });
}

void Run::follow_primary(std::uint32_t old) {
  if (old == primary_ || !servers_[old]->process().is_alive()) return;
  servers_[old]->replicate_from(primary().address());
}

// ---- clients ------------------------------------------------------------------------------------

void Run::send_traffic() {
  if (world_.now() >= kTrafficEnds) return;
  send_one();
  world_.after(Nanos{traffic_.between(1, 2 * between_.count())}, [this] { send_traffic(); });
}

void Run::send_one() {
  const DrawnRequest request = draw_request(traffic_);
  const std::uint64_t first = traffic_.below(nodes_.size());
  // A client tries another node if one refuses the connection.
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = *nodes_[(first + i) % nodes_.size()];
    if (!node.request(request, ++requests_)) continue;
    ++result_.decisions;
    return;
  }
}

// A client that nobody has heard of uses up its limits, alone, by one node after another, and comes
// back as soon as it was told to.
void Run::probe() {
  if (world_.now() >= kProbesEnd - 1s) return;
  client_ = {.node = (client_.node + 1) % node_count_, .request = fresh_request(++fresh_)};
  ask_again();
}

void Run::ask_again() {
  (void)nodes_[client_.node]->request(client_.request, ++requests_, &Run::told, this);
}

void Run::told(void* context, const Node::Result& result) {
  static_cast<Run*>(context)->told(result);
}

void Run::told(const Node::Result& result) {
  if (!result.was_admitted) {
    note(fmt::format("{} was rejected by {} of {}, to come back after {} us", client_.request.user,
                     to_string(result.source), result.rule,
                     result.retry_after.value_or(Nanos{-1'000}).count() / 1'000));
  }
  constexpr int kAsksMax = 200;
  constexpr Nanos kPatience = 1s;
  if (client_.is_back) {
    // Usage that another tier wrote is seen as no more than this tier can hold, and drains at the
    // other one's rate until it is written anew.
    const auto binding = std::ranges::find(rules_.traits, result.rule, &RuleTraits::name);
    const bool is_estimate = binding != rules_.traits.end() && binding->has_variants;
    if (!result.was_admitted && !is_estimate) {
      ledger_.violated("I7", fmt::format("{} waited for {} us, as it was told, and was rejected",
                                         client_.request.user, client_.waited.count() / 1'000));
    }
    world_.after(5ms, [this] { probe(); });
  } else if (result.was_admitted && ++client_.asked < kAsksMax) {
    world_.after(3ms, [this] { ask_again(); });
  } else if (!result.was_admitted && result.retry_after && *result.retry_after < kPatience) {
    client_.is_back = true;
    client_.waited = *result.retry_after;
    // The clocks that count this wait drift apart.
    world_.after(client_.waited + client_.waited / 1'000 + 1ms, [this] { ask_again(); });
  } else {
    world_.after(5ms, [this] { probe(); });
  }
}

// ---- the end ------------------------------------------------------------------------------------

void Run::compare_state() {
  const auto peek = [](void* context, const FieldKey& field,
                       const store::AuthorityLimit& limit) -> std::optional<std::uint64_t> {
    Run& run = *static_cast<Run*>(context);
    const store::SharedCheck check{.limit = &static_cast<const store::RedisLimit&>(limit).shared,
                                   .field = field.field};
    store::CallArguments arguments;
    const WallTime wall = run.primary().process().clock().wall();
    store::write_peek(arguments, {&check, 1}, wall);
    const std::string key = store::shared_key(field.key);
    std::vector<std::string_view> words{"FCALL", run.library_.name, "1", key};
    for (std::size_t i = 0; i < arguments.size(); ++i) words.push_back(arguments[i]);
    const std::string now = std::to_string(wall.time_since_epoch().count() / 1'000);
    if (run.options_.defect == Defect::node_clock_windows) words.push_back(now);
    const Reply reply = run.primary().server().handle(words, wall);
    if (reply.kind != Reply::Kind::array || reply.items.at(0).integer != 1) return std::nullopt;
    return static_cast<std::uint64_t>(reply.items.at(3).integer);
  };
  RedisNode& server = primary();
  ledger_.compare_state(server.address(), peek, this, server.process().clock().wall());
}

RunResult Run::finish() {
  world_.run_until(kQuiet);
  std::map<Incarnation, Ledger::Dropped> alive;
  for (auto& node : nodes_) {
    node->check_idle();
    alive[node->id()] = node->dropped();
  }
  ledger_.finish(alive);
  compare_state();
  if (result_.decisions < options_.decisions) {
    ledger_.violated("run", fmt::format("only {} decisions", result_.decisions));
  }
  result_.hash = world_.history();
  result_.events = world_.events();
  result_.summary = ledger_.summary();
  result_.violation = ledger_.violation();
  return std::move(result_);
}

}  // namespace

RunResult run(const RunOptions& options) { return Run{options}.finish(); }

std::string described(const RunOptions& options, const RunResult& result) {
  std::string text;
  if (result.violation) {
    const Violation& violation = *result.violation;
    text += fmt::format("seed {}: {} at {:.6f} s: {}\n", options.seed, violation.invariant,
                        static_cast<double>(violation.when.time_since_epoch().count()) / 1e9,
                        violation.what);
    text += "the last events:\n";
    for (const std::string& event : violation.before) text += "  " + event + "\n";
  }
  text += fmt::format("{} nodes, {} decisions, {} events, hash {:016x}\n", result.nodes,
                      result.decisions, result.events, result.hash);
  for (const std::string& rule : result.rules) text += "  " + rule + "\n";
  for (const std::string& fault : result.faults) text += "  fault at " + fault + "\n";
  const Ledger::Summary& sum = result.summary;
  text += fmt::format(
      "  {} shared groups: {} limits admitted by the authority, {} by share, {} open, {} closed, "
      "{} rejected by an earlier reply; {} refunds, {} settlements, {} charges for nobody, {} "
      "fields compared\n",
      sum.shared_groups, sum.admitted, sum.by_share, sum.by_open, sum.by_closed, sum.denied_until,
      sum.refunds, sum.settlements, sum.late_charges, sum.fields_compared);
  return text;
}

}  // namespace sluice::sim
