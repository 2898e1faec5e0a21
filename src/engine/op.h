// One request in the engine, from its arrival to its settlement.
//
// Front ends keep ops and reuse them; a decision allocates nothing. An op owns a reference to the
// rules it was decided by and all of its charges. It has no views into the request: the request's
// buffer may be gone before the op is settled.
//
//     idle -> decide() -> decided | waiting -> completed -> decided -> settle() -> idle
//
// One thread: the worker that decides it.
#pragma once

#include "engine/amounts.h"
#include "engine/snapshot.h"
#include "store/store.h"
#include <sluice/decision.h>
#include <sluice/time.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sluice::engine {

enum class Action : std::uint8_t {
  pass,    // after op.decision.delay, if set: then call released() or abandon()
  reject,  // with `status`
  drop,    // close without a response
};

enum class Reason : std::uint8_t {
  allowed,                // every limit has room
  unmatched,              // no rule matches, and the default allows
  limited,                // a limit is reached
  never,                  // it costs more than a limit ever allows
  queue_full,             // a limit is reached, and its queue is full
  blocked,                // by an earlier rejection, for the block's duration
  allow_listed,           // the client is not counted
  preflight,              // CORS preflights are not counted
  deny_listed,            // the client is rejected
  missing_value,          // a value that a rule needs is missing
  ambiguous_value,        // a rule counts by a value that the request states twice, differently
  unauthenticated,        // authentication is required
  ambiguous_credentials,  // two credentials of one kind: servers differ in which one they use
  no_rule,                // no rule matches, and the default rejects
  too_many_rules,         // more limits than one request may have
  bad_target,             // its path cannot be normalised
  store_failed,           // the store failed, and the rule fails closed
};
[[nodiscard]] std::string_view to_string(Reason reason) noexcept;

// One limit's result for the request.
struct LimitOutcome {
  const rules::Rule* rule = nullptr;
  const rules::RuleLimit* limit = nullptr;
  std::uint64_t amount = 0;  // in force: a claim or an override may have changed the written one
  Decision decision;
  bool shadow = false;  // log only
  store::Cost cost = 1;
};

// A worker's reference to its rules, counted without atomic operations: all users are on one
// thread.
struct SnapshotPin {
  std::shared_ptr<const Snapshot> snapshot;
  std::uint32_t ops = 0;
};

class Op {
 public:
  Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  ~Op() = default;

  // ---- the decision ---------------------------------------------------------------------------

  Action action = Action::pass;
  Reason reason = Reason::allowed;
  std::uint16_t status = 200;         // to reject with
  const rules::Rule* rule = nullptr;  // the binding one; null: none
  Decision decision;                  // of its limit
  std::string_view source = "local";  // local or fallback

  [[nodiscard]] std::span<const LimitOutcome> limits() const noexcept {
    return std::span{outcomes_}.first(outcome_count_);
  }

  // Called once, by the worker, if decide() returned "later".
  void (*completed)(Op&) noexcept = nullptr;
  void* owner = nullptr;

  [[nodiscard]] bool waiting() const noexcept { return stage_ == Stage::waiting; }

  // How often to renew a request in flight; 0: never.
  [[nodiscard]] Nanos renew_every() const noexcept {
    Nanos shortest{0};
    for (const Held& held : std::span{held_}.first(held_count_)) {
      if (held.fate != Fate::in_flight) continue;
      const Nanos half = held.limit->written->limit.slot_ttl.value_or(kLeaseDefault) / 2;
      if (shortest == Nanos{0} || half < shortest) shortest = half;
    }
    return shortest;
  }

 private:
  friend class Decider;

  enum class Stage : std::uint8_t { idle, waiting, decided };

  // The client, for the book of blocks: the request is gone when the book is written.
  struct Label {
    std::uint16_t first = 0;
    std::uint16_t size = 0;
  };
  // A check in the store, and its rule.
  struct Asked {
    const Plan* plan = nullptr;
    const PlannedLimit* limit = nullptr;
    std::uint64_t amount = 0;
    std::uint64_t key = 0;  // of the rule, without the salt of its limits
    Label label;            // of rules that block
  };
  // What happens to a charge when the request ends.
  enum class Fate : std::uint8_t {
    stays,      // unless the response does not count
    in_flight,  // a lease, to be returned
    promised,   // charged then, if the response counts
  };
  struct Held {
    store::Check check;  // its cost is the amount charged so far
    store::Charge charge;
    const Plan* plan = nullptr;
    const PlannedLimit* limit = nullptr;  // of the rule, or of the client's tier
    store::Store* by = nullptr;           // that charged it
    Fate fate = Fate::stays;
    bool corrects = false;  // an additional charge for the actual cost
  };

  static constexpr Nanos kLeaseDefault{std::chrono::seconds{60}};
  // Of each kind: checks that may reject, of both phases together, and checks of shadow rules.
  // resolve_rule() takes no rule whose limits would exceed it. Every check has one outcome, and at
  // most one charge when all is decided: so the arrays for both kinds never overflow.
  static constexpr std::size_t kMost = store::kCallChecksMax;
  static constexpr std::size_t kMostOfBoth = 2 * kMost;
  static constexpr std::size_t kLabelBytes = 512;  // of all labels of a request

  Stage stage_ = Stage::idle;
  Now asked_at_;
  SnapshotPin* pin_ = nullptr;
  class Decider* worker_ = nullptr;
  const Plan* queued_ = nullptr;  // by this rule, until it is released
  store::Call call_;
  std::array<Asked, kMost> asked_;
  std::size_t early_count_ = 0;  // checks asked before verification
  std::array<store::Check, kMost> shadow_checks_;
  std::array<Asked, kMost> shadows_;
  std::size_t shadow_count_ = 0;
  std::array<LimitOutcome, kMostOfBoth> outcomes_;
  std::size_t outcome_count_ = 0;
  std::array<Held, kMostOfBoth> held_;
  std::size_t held_count_ = 0;
  std::array<Amounts::Use*, kMostOfBoth> uses_;  // numbers for the request's own amounts
  std::size_t use_count_ = 0;
  std::array<char, kLabelBytes> labels_;
  std::size_t label_bytes_ = 0;
};

}  // namespace sluice::engine
