// Decides requests, one decider per thread.
//
// The order of a decision: normalise the path; find the client's address and look it up in the
// allow and deny lists; look up blocks that need only address and request; charge rules before
// authentication; verify tokens and keys (ambiguous ones are rejected) and look them up in the
// lists; find all other matching rules, look up their blocks, and check all of their limits in one
// step, all or nothing. Shadow rules are then charged for an allowed request, each by itself, and
// never reject; nothing waits for those that the store decides later.
//
// decider.cc has the order, decider_checks.cc turns rules into checks, decider_answers.cc reads the
// store's results, decider_settle.cc charges and refunds after the response.
//
// One thread. Deciding allocates nothing, takes no lock, reads no clock and does not log.
#pragma once

#include "base/pool.h"
#include "engine/amounts.h"
#include "engine/block_book.h"
#include "engine/client_policy.h"
#include "engine/deciding.h"
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
  std::uint64_t store_failures = 0;          // by `on_failure`, in part at least
  std::uint64_t would_refuse = 0;            // by shadow rules
  std::uint64_t shadow_checks_skipped = 0;   // rules without room beside the others on a request
  std::uint64_t dynamic_limits_skipped = 0;  // from requests; the store had no room for them
  std::uint64_t blocks = 0;                  // started
  std::uint64_t blocks_dropped = 0;          // the table had no room for them
  std::uint64_t block_rejections_lost = 0;   // towards a block; the table had no room for them
  std::uint64_t block_names_displaced = 0;   // of blocks in force, by names of other blocks
  std::uint64_t failures_forgotten = 0;      // early, of addresses that failed to authenticate
};

// The upstream's response.
struct ResponseView {
  std::uint16_t status = 0;
  std::optional<std::uint8_t> grpc_status;
  std::span<const HeaderView> headers;
};

// The request as the rules saw it: the gateway routes and logs by this. Views into the request's
// buffer and into the decider; valid until that buffer changes or the decider's next request.
struct ResolvedRequest {
  std::string_view host;  // normalised
  std::string_view path;  // normalised; with host and decoded_path empty after Reason::bad_target
  // With escaped slashes decoded; empty: there is no second reading.
  std::string_view decoded_path;
  // As far as verified: a request decided before its credentials are verified has none.
  identity::Identity client;
};

// The result of decide() beside the op.
struct Decided {
  store::Completion completion;  // later: op.completed will be called
  const ResolvedRequest& request;
};

class Decider {
 public:
  // `limits` is the registry of the store's limits. All ops are settled or abandoned before the
  // decider is destroyed, and the store completes no call afterwards.
  Decider(store::Store& store, store::Limits& limits);
  Decider(const Decider&) = delete;
  Decider& operator=(const Decider&) = delete;
  ~Decider();

  // For requests from now on; requests in flight keep their rules. Rules and an identifier are
  // needed before the first request.
  void use(std::shared_ptr<const Snapshot> snapshot);
  void use(std::shared_ptr<const Lists> lists) noexcept { lists_ = std::move(lists); }
  void use(BlockBook* book) noexcept { book_ = book; }  // null: blocks have no labels
  void use(std::shared_ptr<const identity::Identifier> identifier,
           ClientPolicy policy = {}) noexcept {
    identifier_ = std::move(identifier);
    policy_ = policy;
  }

  // Decided at once, or later: then op.completed is called. The op keeps no views into the
  // request's buffer; the resolved request does.
  Decided decide(Op& op, const RequestView& request, Now now) noexcept;
  // The same for a client identified already: from a log, or by another gateway.
  Decided decide(Op& op, const RequestView& request, const identity::Identity& client,
                 Now now) noexcept;

  // By one rule alone, whatever others match: "may Ann create a URL?" The path is not normalised.
  // `cost` replaces the rule's own.
  store::Completion decide_by(rules::RuleNumber rule, Op& op, const RequestView& request,
                              const identity::Identity& client, Now now,
                              std::optional<store::Cost> cost = std::nullopt) noexcept;

  // Many requests, each by itself: memory for later requests is fetched while earlier ones are
  // decided. op.waiting() is true for requests that the store completes later.
  void decide_batch(std::span<Op* const> ops, std::span<const RequestView> requests,
                    Now now) noexcept;

  // A queued request has waited its delay and is forwarded.
  void released(Op& op) noexcept;

  // The client left before the decision, or while its request was queued: charges are refunded, as
  // nothing was forwarded. In a queue this frees the last place only: the requests behind already
  // have their delays.
  void abandon(Op& op, Now now) noexcept;

  // The response's headers arrived: limits that count only some responses charge it, or refund a
  // response that does not count. The request is still in flight.
  void responded(Op& op, const ResponseView& response, Now now) noexcept;

  // The request is no longer in flight. Pass `response` unless responded() was called; null if
  // there is none: then charges stay, and charges that wait for a response are made.
  void settle(Op& op, const ResponseView* response, Now now) noexcept;

  // The request is still in flight: extends its leases.
  void renew(Op& op, Now now) noexcept;

  // The actual cost of the request: for all of its charges except slots of requests in flight. May
  // be called more than once, before the response arrives.
  void correct_cost(Op& op, store::Cost actual, Now now) noexcept;

  // Worth one warning: see ClientAddressFinder.
  [[nodiscard]] bool ignores_forwarding(const RequestView& request) const noexcept {
    return identifier_->ignores_forwarding(request);
  }

  [[nodiscard]] const DeciderCounters& counters() const noexcept { return counters_; }

 private:
  enum class Resolved : std::uint8_t { ready, missing, ambiguous, too_many };
  // How far a request came before the store is asked.
  enum class Prepared : std::uint8_t { to_be_asked, decided };
  // A limit as it applies to one client.
  struct InForce {
    store::LimitNumber number = 0;
    std::uint64_t amount = 0;
    Amounts::Use* use = nullptr;
  };

  // These fill resolved_.
  template <class Verify>
  [[nodiscard]] Prepared prepare(Op& op, const RequestView& request, Now now,
                                 Verify&& verify) noexcept;
  [[nodiscard]] Prepared prepare(Op& op, const RequestView& request, Now now) noexcept;
  Prepared reject_target(Op& op) noexcept;
  [[nodiscard]] Prepared prepare_exempt(Op& op, const rules::Asked& asked, Now now) noexcept;
  [[nodiscard]] store::Completion ask(Op& op, Prepared prepared, Now now) noexcept;
  void release(Op& op) noexcept;
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
  [[nodiscard]] static Deciding::Label label_of(Op& op, const Plan& plan, const rules::Asked& asked,
                                                const rules::Matched& matched) noexcept;

  // decider_answers.cc
  static void later(store::Call& call) noexcept;
  void conclude(Op& op, Now now) noexcept;
  void admit(Op& op, std::size_t binding, const Decision& decision, Now now) noexcept;
  enum class Keep : std::uint8_t { all, unfinished };
  void record(Op& op, Keep keep) noexcept;
  [[nodiscard]] static Op::Held held_by(const Deciding::Asked& asked, const store::Check& check,
                                        const store::Charge& charge) noexcept;
  static void hold(Op& op, const Deciding::Asked& asked, const store::Check& check,
                   const store::Charge& charge, Keep keep) noexcept;
  [[nodiscard]] bool may_wait(Op& op, Now now) noexcept;
  void refuse(Op& op, Now now) noexcept;
  [[nodiscard]] const rules::Rule* leave_out_undecided(Deciding& deciding) noexcept;
  // Whether blocks that need only address and request have been looked up.
  enum class Early : std::uint8_t { done, not_done };
  [[nodiscard]] bool blocked(Op& op, Early early, Now now) noexcept;
  [[nodiscard]] bool blocked_by_request(Op& op, const rules::Asked& asked, Now now) noexcept;
  [[nodiscard]] bool is_blocked(Op& op, const Plan& plan, std::uint64_t key, Now now) noexcept;
  void punish(Op& op, Now now) noexcept;
  void write_down(const Deciding& deciding, const Deciding::Asked& asked, Now now) noexcept;
  const Decision& ask_alone(const PlannedLimit& limit, std::uint64_t key, store::Cost cost,
                            Now now) noexcept;

  // decider_shadows.cc
  void ask_shadows(Op& op, Now now) noexcept;
  void ask_shadow(Op& op, std::size_t first, std::size_t count, Now now) noexcept;
  void ask_shadow_later(Op& op, std::size_t first, std::size_t count, Now now) noexcept;
  void conclude_shadow(Deciding& shadow) noexcept;
  static void shadow_later(store::Call& call) noexcept;
  static void record_shadow(Op& op, const Deciding::Asked& asked, const store::Check& check,
                            const store::Answer& answer, store::Source source) noexcept;
  void settle_late(const Deciding& shadow, Op::Held held) noexcept;
  void tell_shadows(const Op& op, const ResponseView& response) noexcept;
  enum class Gone : std::uint8_t { over, abandoned };
  void leave_shadows(Op& op, Gone how) noexcept;

  // decider_settle.cc
  void give_back(Op::Held& held, Now now) noexcept;
  void charge_promised(const Op::Held& held, Now now) noexcept;
  // Whether the response counts under a rule.
  [[nodiscard]] static bool is_counted(const Plan& plan, const ResponseView& response) noexcept;
  static void leave_queue(Op& op) noexcept;

  store::Store& store_;
  std::shared_ptr<const identity::Identifier> identifier_;
  ClientPolicy policy_;
  std::unique_ptr<SnapshotPin> pin_;
  std::vector<std::unique_ptr<SnapshotPin>> retired_;  // still used by ops
  std::shared_ptr<const Lists> lists_;
  BlockBook* book_ = nullptr;
  Amounts amounts_;
  KeyPrefetch prefetch_;
  identity::IdentifierScratch scratch_;
  std::array<char, identity::kPathScratchBytes> path_;
  std::array<char, identity::kPathScratchBytes> decoded_path_;
  // The last request's host: the next request is most likely for the same.
  std::array<char, identity::kHostScratchBytes> host_;
  std::array<char, identity::kHostScratchBytes + 64> host_asked_;  // with a port, and a user
  std::size_t host_asked_bytes_ = 0;
  std::optional<std::string_view> host_normal_ = std::string_view{};
  ResolvedRequest resolved_;
  rules::Matches matches_;
  store::Call alone_;  // for counts checked one by one
  Pool<Deciding> pool_;
  std::vector<Deciding*> late_shadows_;  // in flight
  DeciderCounters counters_;
};

}  // namespace sluice::engine
