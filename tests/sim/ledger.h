// What happened in a run, as far as the invariants need it, and whether they hold.
//
// One request is seen at three places, and the ledger compares what each of them says:
//
//   the engine's store    what was asked, admitted, refunded, corrected      (observers.h)
//   the authority's seam  what the store asked of the authority, and learnt  (observers.h)
//   the servers           what was executed there, and when                  (RedisObserver)
//
// Time is the authority's: the clock of the server that executed a decision. A server's usage has
// lives: data that were lost, a failover and a step of the server's clock begin a new one. Within a
// life nothing is promised but the limit itself; each new life may admit the limit once more, which
// is the bound that is promised for them.
//
// One thread.
#pragma once

#include "base/digest.h"
#include "sim/network.h"
#include "sim/redis_node.h"
#include "sim/world.h"
#include "store/check.h"
#include "store/redis/call_codec.h"
#include "store/redis/redis_authority.h"
#include "store/shared/shared_limits.h"
#include <sluice/limit.h>
#include <sluice/time.h>

#include <fmt/format.h>

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::sim {

using store::Cost;

// One limit of one rule and subject, as a server names it.
struct FieldKey {
  Digest key;
  store::FieldId field = 0;
  friend auto operator<=>(const FieldKey&, const FieldKey&) = default;
};

// A process of a node, from start to end.
struct Incarnation {
  std::uint32_t node = 0;
  std::uint32_t number = 0;
  friend auto operator<=>(const Incarnation&, const Incarnation&) = default;
};

// What the ledger has to know of a rule.
struct RuleTraits {
  std::string name;
  bool resets = false;          // an edit may forget usage: nothing is promised for its limits
  bool has_variants = false;    // tiers, overrides or edits: several limits count in one field
  bool is_only_probed = false;  // charged after the response: parallel requests may exceed it
};

struct Violation {
  std::string invariant;  // "I1"
  std::string what;
  WorldTime when;
  std::vector<std::string> before;  // the last things that happened
};

class Ledger final : public RedisObserver {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  Ledger(World& world, std::vector<RuleTraits> rules, std::uint32_t nodes)
      : world_(world), rules_(std::move(rules)), nodes_(nodes) {}

  // Only the first one is kept: what follows is often its consequence.
  void violated(std::string_view invariant, std::string what);
  [[nodiscard]] const std::optional<Violation>& violation() const noexcept { return violation_; }
  // Remembered for messages.
  void event(std::string text);
  // From here on, tells all that happens on standard output.
  void trace() noexcept { is_traced_ = true; }

  // ---- servers ----------------------------------------------------------------------------------

  // A life of a server begins. `from_empty`: without data.
  void begin_life(Address server, bool from_empty);
  [[nodiscard]] std::uint32_t life_of(Address server) const { return servers_.at(server); }
  void connected(Socket socket, Incarnation node);
  void executed(Address server, Socket client, Words command, const Reply& reply,
                WallTime wall) override;
  // What was executed for the reply of this place on a connection.
  [[nodiscard]] std::uint32_t execution(Socket socket, std::size_t place) const;

  // ---- the authority's seam ---------------------------------------------------------------------

  struct Part {
    FieldKey field;
    Cost cost = 0;
    bool probe = false;
    Cost charged = 0;  // by the reply
    std::int64_t mark = 0;
    std::int64_t edition = 0;
    const store::AuthorityLimit* limit = nullptr;
  };
  struct Ask {
    Incarnation node;
    std::uint32_t call = kNone;
    std::vector<Part> parts;
    std::optional<store::AuthorityOutcome> outcome;
    std::uint32_t execution = kNone;
  };
  std::uint32_t asked(Incarnation node, const Digest& key,
                      std::span<const store::AuthorityCheck> checks);
  void not_asked(std::uint32_t ask);  // it was not sent
  void replied(std::uint32_t ask, store::AuthorityOutcome outcome,
               std::span<const store::Answer> answers, std::uint32_t execution);
  void charge_sent(Incarnation node, const Digest& key, const store::AuthorityCheck& check,
                   store::Authority::Reason reason);
  void refund_sent(Incarnation node, const Digest& key,
                   std::span<const store::AuthorityRefund> refunds);

  // ---- the engine's store -----------------------------------------------------------------------

  // The request on whose behalf the engine acts.
  void acting_for(std::uint64_t request) noexcept { request_ = request; }
  [[nodiscard]] std::uint64_t request() const noexcept { return request_; }

  std::uint32_t called(Incarnation node, const store::Call& call, const store::SharedLimits& limits,
                       Now now);
  void asking_done() noexcept { calling_ = kNone; }
  [[nodiscard]] MonoTime asked_at(std::uint32_t call) const { return calls_[call].asked.mono; }
  // A call completes later: what follows is on behalf of its request.
  void resume(std::uint32_t call) noexcept { request_ = calls_[call].request; }
  void completed(std::uint32_t call, const store::Call& with, Now now, MonoTime allowed_until);
  void cancelled(std::uint32_t call);
  void refunded(Incarnation node, const store::Check& check, const store::Holding& holding);
  void corrected(Incarnation node, const store::Check& check, const store::Holding& holding,
                 Cost cost);
  void renewed(Incarnation node, const store::Check& check);
  void charged(Incarnation node, const store::Check& check);
  // A request of the engine is over.
  void request_over(std::uint64_t request);
  // The process crashed: what was in memory is lost.
  void crashed(Incarnation node);
  void wall_stepped(std::uint32_t node) { ++wall_steps_[node]; }
  // From here on every shared limit has to be decided by the authority.
  void expect_liveness(bool expected) noexcept { expects_liveness_ = expected; }

  [[nodiscard]] std::uint64_t calls() const noexcept { return calls_.size(); }

  // ---- at quiet ---------------------------------------------------------------------------------

  // What a node's counters say was dropped, for lack of room or of time.
  struct Dropped {
    bool refunds = false;
    bool charges = false;
    bool settlements = false;
  };
  void finish(const std::map<Incarnation, Dropped>& alive);
  // Compares what the ledger knows with what the server holds. `peek` answers what is left of a
  // limit, or nothing.
  using Peek = std::optional<std::uint64_t> (*)(void* context, const FieldKey& field,
                                                const store::AuthorityLimit& limit);
  void compare_state(Address server, Peek peek, void* context, WallTime wall);

  struct Summary {
    std::uint64_t calls = 0;
    std::uint64_t shared_groups = 0;
    std::uint64_t admitted = 0;  // by the authority
    std::uint64_t by_share = 0;
    std::uint64_t by_open = 0;
    std::uint64_t by_closed = 0;
    std::uint64_t denied_until = 0;
    std::uint64_t refunds = 0;
    std::uint64_t settlements = 0;
    std::uint64_t late_charges = 0;  // done, and nobody waited
    std::uint64_t fields_compared = 0;
  };
  [[nodiscard]] const Summary& summary() const noexcept { return summary_; }

 private:
  enum class What : std::uint8_t { decide, charge, settle, refund, renew, other };
  struct Execution {
    Address server = 0;
    std::uint32_t life = 0;
    Incarnation node;
    Digest key;
    What what = What::other;
    std::int64_t server_us = 0;
    WorldTime at;
    bool done = false;      // status 1
    bool is_first = true;   // of its number, in any life
    bool reported = false;  // to an authority
  };
  struct CalledGroup {
    Digest key;
    std::uint32_t rule = 0;
    std::uint8_t first = 0;
    std::uint8_t count = 0;
    bool is_shared = false;
    store::GroupVerdict verdict = store::GroupVerdict::not_asked;
    store::Source source = store::Source::local;
    std::uint32_t ask = kNone;
  };
  struct CalledCheck {
    FieldKey field;
    Cost cost = 0;
    bool probe = false;
    const store::AuthorityLimit* limit = nullptr;
  };
  struct Called {
    Incarnation node;
    std::uint64_t request = 0;
    Now asked;
    std::vector<CalledGroup> groups;
    std::vector<CalledCheck> checks;
    bool is_independent = false;
    bool is_completed = false;
    bool is_cancelled = false;
    bool is_lost = false;  // by a crash
    bool is_admitted = false;
  };
  // A charge that admitted a request.
  struct Admission {
    FieldKey field;
    std::uint32_t rule = 0;
    std::uint32_t life = 0;
    std::int64_t server_us = 0;
    WorldTime from;
    WorldTime to;
    std::int64_t mark = 0;
    std::int64_t edition = 0;
    Cost cost = 0;  // what it kept in the end
    const store::AuthorityLimit* limit = nullptr;
    bool is_over = false;
  };
  struct ByShare {
    FieldKey field;
    Incarnation node;
    std::uint32_t rule = 0;
    Now at;
    Cost cost = 0;
    const store::AuthorityLimit* limit = nullptr;
  };
  // Sums of one incarnation and field.
  struct Account {
    std::int64_t known_done = 0;     // cost of decisions that are known to have charged
    std::int64_t unknown = 0;        // ... whose outcome is not known
    std::int64_t executed_done = 0;  // at servers
    std::int64_t refunds_late = 0;   // by requests of a share: due if the late reply has charged
    std::int64_t refunds_due = 0;    // by requests, and for requests that were not admitted
    std::int64_t refunds_sent = 0;   // by the store
    std::int64_t refunds_executed = 0;
    bool is_inexact = false;     // holdings whose content is known later
    std::int64_t owed = 0;       // admitted by share or open
    std::int64_t owed_back = 0;  // ... and refunded
    std::int64_t settled_sent = 0;
    std::int64_t charges_sent = 0;   // for good, and corrections
    std::int64_t charges_asked = 0;  // at servers
    std::int64_t capacity = 0;
  };
  // Of one field in one life of a server.
  struct FieldLife {
    std::int64_t charged = 0;
    std::int64_t refunded = 0;
    std::int64_t first_us = 0;
    bool was_forced = false;  // by a charge that could not be rejected
    std::set<std::int64_t> editions;
  };

  template <class... Arguments>
  void tell(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    if (!is_traced_) [[likely]]
      return;
    tell_text(fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  void tell_text(const std::string& text) const;
  void execute_parts(const Execution& execution, Words command, const Reply& reply);
  void execute_refunds(const Execution& execution, Words command);
  [[nodiscard]] Account& account(Incarnation node, const FieldKey& field) {
    return accounts_[{field, node}];
  }
  void finish_call(Called& call);
  void check_accounts(const std::map<Incarnation, Dropped>& alive);
  void check_admissions();
  void check_field(std::span<Admission*> admissions);
  void check_shares();
  [[nodiscard]] std::string named(const FieldKey& field, std::uint32_t rule) const;
  // The same limit, for as long as the ledger lives: that of a node goes with its process.
  [[nodiscard]] const store::AuthorityLimit* kept(const store::AuthorityLimit& limit);

  World& world_;
  std::vector<RuleTraits> rules_;
  std::uint32_t nodes_;
  std::optional<Violation> violation_;
  std::deque<std::string> events_;
  bool is_traced_ = false;

  std::map<Address, std::uint32_t> servers_;  // their lives
  std::vector<bool> lives_from_empty_;
  struct Connection {
    Incarnation node;
    std::vector<std::uint32_t> executions;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Connection> connections_;
  std::vector<Execution> executions_;
  // Numbered calls that were applied, and in which life.
  std::map<std::pair<std::string, std::uint64_t>, std::set<std::uint32_t>> numbered_;

  std::vector<Ask> asks_;
  std::deque<Called> calls_;
  std::uint32_t calling_ = kNone;
  std::uint64_t request_ = 0;
  bool expects_liveness_ = false;

  std::deque<Admission> admissions_;
  std::map<std::pair<std::uint64_t, FieldKey>, Admission*> by_request_;
  std::map<std::pair<std::uint64_t, FieldKey>, ByShare*> shares_by_request_;
  std::deque<ByShare> by_share_;
  std::map<std::pair<FieldKey, Incarnation>, Account> accounts_;
  std::map<std::pair<FieldKey, std::uint32_t>, FieldLife> field_lives_;
  std::map<FieldKey, std::pair<std::uint32_t, const store::AuthorityLimit*>> fields_;
  std::set<Incarnation> crashed_;
  std::map<std::uint32_t, std::uint32_t> wall_steps_;
  std::map<std::string, std::unique_ptr<const store::AuthorityLimit>, std::less<>> limits_;
  Summary summary_;
};

}  // namespace sluice::sim
