// Decides requests, one worker per thread.
//
// The order of a decision: the path is normalised; the client's address is found, and looked up in
// the allow and deny lists; so are the blocks that need no more than address and request; rules
// that want no proof of who is asking are charged; tokens and keys are verified, and looked up in
// the lists, unless they are ambiguous, which is rejected; every other rule that concerns the
// request is found, their blocks are looked up, and all of their limits are asked in one step, all
// or nothing. Shadow rules are told of what was admitted, each by itself, and never refuse.
//
// decider.cc has the order, decider_checks.cc makes checks of rules, decider_answers.cc reads what
// the store says, decider_settle.cc is for what comes after.
//
// One thread. Deciding allocates nothing, takes no lock, reads no clock and does not log.
#pragma once

#include "engine/amounts.h"
#include "engine/block_book.h"
#include "engine/client_policy.h"
#include "engine/key.h"
#include "engine/key_prefetch.h"
#include "engine/lists.h"
#include "engine/op.h"
#include "engine/snapshot.h"
#include "identity/host.h"
#include "identity/identifier.h"
#include "identity/method.h"
#include "identity/path.h"
#include "store/store.h"
#include <sluice/request.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::engine {

struct DeciderCounters {
  std::uint64_t decided = 0;
  std::uint64_t passed = 0;
  std::uint64_t rejected = 0;
  std::uint64_t too_many_rules = 0;
  std::uint64_t bad_targets = 0;
  std::uint64_t store_failures = 0;
  std::uint64_t would_refuse = 0;           // by shadow rules
  std::uint64_t shadow_checks_skipped = 0;  // rules that had no room beside the others on a request
  std::uint64_t dynamic_limits_skipped = 0;  // that requests brought, and the store had no room for
  std::uint64_t blocks = 0;                  // that began
};

// What the upstream answered.
struct ResponseView {
  std::uint16_t status = 0;
  std::optional<std::uint8_t> grpc_status;
  std::span<const HeaderView> headers;
};

class Decider {
 public:
  // `store` answers for all rules; `fallback` for those that spend their share when it cannot.
  // All ops are settled or abandoned before it goes.
  Decider(store::Store& store, store::Store& fallback);
  ~Decider();

  // For requests from now on; those under way keep their rules. Rules and clients are needed before
  // the first.
  void use(std::shared_ptr<const Snapshot> snapshot);
  void use(std::shared_ptr<const Lists> lists) noexcept { lists_ = std::move(lists); }
  void use(BlockBook* book) noexcept { book_ = book; }  // null: blocks have no labels
  void use(std::shared_ptr<const identity::Identifier> identifier,
           ClientPolicy policy = {}) noexcept {
    identifier_ = std::move(identifier);
    policy_ = policy;
  }

  // Decided at once, or later: then op.completed is called. The request must stay until this
  // returns, no longer.
  store::Completion decide(Op& op, const RequestView& request, Now now) noexcept;
  // The same for somebody who is known already: from a log, or by another gateway's word.
  store::Completion decide(Op& op, const RequestView& request, const identity::Identity& client,
                           Now now) noexcept;

  // By the name of one rule, whatever else concerns the request: "may Ann create a URL?" The path
  // is taken as it is. A cost that is given stands in place of the rule's own.
  store::Completion decide_by(rules::RuleNumber rule, Op& op, const RequestView& request,
                              const identity::Identity& client, Now now,
                              std::optional<store::Cost> cost = std::nullopt) noexcept;

  // Many requests, each for itself: memory is fetched for the later ones while the earlier ones are
  // decided. Those that the store answers later say so by op.waiting().
  void decide_batch(std::span<Op* const> ops, std::span<const RequestView> requests,
                    Now now) noexcept;

  // The store takes too long: every rule that is concerned decides by its `on_failure`.
  void give_up_waiting(Op& op, Now now) noexcept;

  // A request that was held has waited long enough, and goes on.
  void released(Op& op) noexcept;

  // The client left before it was decided, or while it was held in a queue: what was charged is
  // given back, as nothing was passed on. Of a queue that is the last turn only: those behind
  // somebody who leaves were told when they go on.
  void abandon(Op& op, Now now) noexcept;

  // The head of the response is there: limits that count only some responses charge it, or get back
  // what does not count. The request is still in flight.
  void responded(Op& op, const ResponseView& response, Now now) noexcept;

  // The request is over: it is in flight no longer. Its response, if nobody has told of it yet;
  // null where there is none: then charges stay, and those that wait for a response are made.
  void settle(Op& op, const ResponseView* response, Now now) noexcept;

  // The request is still in flight: its leases live on.
  void renew(Op& op, Now now) noexcept;

  // What the request cost in the end: for all that was charged for it except requests in flight.
  // May be said more than once, before the response is there.
  void correct_cost(Op& op, store::Cost actual, Now now) noexcept;

  // Of the request that was decided last, until the next one: what it was routed and counted by.
  [[nodiscard]] std::string_view path() const noexcept { return route_; }
  // With slashes for escaped ones; empty: there is no such other reading.
  [[nodiscard]] std::string_view decoded_path() const noexcept { return decoded_route_; }
  [[nodiscard]] std::string_view host() const noexcept { return *host_normal_; }
  [[nodiscard]] const identity::Identity& client() const noexcept { return client_; }

  // Worth one warning: see ClientAddressFinder.
  [[nodiscard]] bool ignores_forwarding(const RequestView& request) const noexcept {
    return identifier_->ignores_forwarding(request);
  }

  [[nodiscard]] const DeciderCounters& counters() const noexcept { return counters_; }

 private:
  enum class Resolved : std::uint8_t { ready, missing, ambiguous, too_many };
  // How far a request came before the store was asked.
  enum class Prepared : std::uint8_t { to_be_asked, decided };
  // A limit as it is for one client.
  struct InForce {
    store::LimitNumber number = 0;
    std::uint64_t amount = 0;
    Amounts::Use* use = nullptr;
  };

  template <class Verify>
  [[nodiscard]] Prepared prepare(Op& op, const RequestView& request, identity::Identity& client,
                                 Now now, Verify&& verify) noexcept;
  [[nodiscard]] Prepared prepare(Op& op, const RequestView& request, Now now) noexcept;
  [[nodiscard]] Prepared prepare_exempt(Op& op, const rules::Asked& asked, Now now) noexcept;
  [[nodiscard]] store::Completion ask(Op& op, Now now) noexcept;
  [[nodiscard]] std::optional<std::string_view> normal_host(std::string_view host) noexcept;
  void begin(Op& op, Now now) noexcept;
  void end(Op& op) noexcept;
  Prepared finish(Op& op, Action action, Reason reason, std::uint16_t status,
                  const rules::Rule* rule = nullptr, const Decision& decision = {}) noexcept;
  [[nodiscard]] bool is_listed(Op& op, const Lists::Answer& answer) noexcept;

  // decider_checks.cc
  [[nodiscard]] bool resolve(Op& op, const rules::Asked& asked,
                             const rules::Matches& matches) noexcept;
  [[nodiscard]] Resolved resolve_rule(Op& op, const rules::Asked& asked,
                                      const rules::Matched& matched) noexcept;
  [[nodiscard]] InForce in_force(const Plan& plan, const PlannedLimit& limit,
                                 const rules::Asked& asked, Now now) noexcept;
  [[nodiscard]] static Op::Label label_of(Op& op, const Plan& plan, const rules::Asked& asked,
                                          const rules::Matched& matched) noexcept;

  // decider_answers.cc
  static void later(store::Call& call) noexcept;
  void decide_without_store(Op& op, Now now) noexcept;
  void conclude(Op& op, store::Store& by, Now now) noexcept;
  void admit(Op& op, std::size_t binding, const Decision& decision, Now now) noexcept;
  void record(Op& op, store::Store& by, bool keep_charges) noexcept;
  static void hold(Op& op, const Op::Asked& asked, const store::Check& check,
                   const store::Charge& charge, store::Store& by, bool keep_charges) noexcept;
  [[nodiscard]] bool may_wait(Op& op, Now now) noexcept;
  void ask_shadows(Op& op, Now now) noexcept;
  void ask_shadow(Op& op, std::size_t first, std::size_t count, Now now) noexcept;
  void refuse(Op& op, Now now) noexcept;
  // Blocks that are looked up before all else have been, or nobody has looked yet.
  enum class Early : std::uint8_t { done, not_done };
  [[nodiscard]] bool blocked(Op& op, Early early, Now now) noexcept;
  [[nodiscard]] bool blocked_by_request(Op& op, const rules::Asked& asked, Now now) noexcept;
  [[nodiscard]] bool is_blocked(Op& op, const Plan& plan, std::uint64_t key, Now now) noexcept;
  void punish(Op& op, Now now) noexcept;
  void write_down(const Op& op, const Op::Asked& asked, Now now) noexcept;
  const Decision& ask_alone(const PlannedLimit& limit, std::uint64_t key, store::Cost cost,
                            Now now) noexcept;

  // decider_settle.cc
  static void give_back(const Op::Held& held, Now now) noexcept;
  static void charge_promised(const Op::Held& held, Now now) noexcept;
  static void correct(Op& op, std::size_t place, store::Cost actual, Now now) noexcept;
  static void charge_more(Op& op, std::size_t place, store::Cost cost, Now now) noexcept;
  static void leave_queue(Op& op) noexcept;

  store::Store& store_;
  store::Store& fallback_;
  std::shared_ptr<const identity::Identifier> identifier_;
  ClientPolicy policy_;
  std::unique_ptr<SnapshotPin> pin_;
  std::vector<std::unique_ptr<SnapshotPin>> retired_;  // that ops still hold
  std::shared_ptr<const Lists> lists_;
  BlockBook* book_ = nullptr;
  Amounts amounts_;
  KeyPrefetch prefetch_;
  identity::IdentifierScratch scratch_;
  std::array<char, identity::kPathScratchBytes> path_;
  std::array<char, identity::kPathScratchBytes> decoded_path_;
  // The host of the last request: the next one is most likely for the same.
  std::array<char, identity::kHostScratchBytes> host_;
  std::array<char, identity::kHostScratchBytes + 64> host_asked_;  // with a port, and a user
  std::size_t host_asked_bytes_ = 0;
  std::optional<std::string_view> host_normal_ = std::string_view{};
  std::string_view route_;
  std::string_view decoded_route_;
  identity::Identity client_;
  rules::Matches matches_;
  store::Call alone_;  // for counts that are asked one by one
  DeciderCounters counters_;
};

}  // namespace sluice::engine
