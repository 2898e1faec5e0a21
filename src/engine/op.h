// One request in the engine, from its arrival to its settlement.
//
// Front ends keep ops and use them again and again; a decision allocates nothing. An op owns a
// reference to the rules it was decided by and all that it charged, and holds no views into the
// request: by the time it is settled, the request's buffer may be gone.
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
  pass,    // after op.decision.delay, if there is one: then call released() or abandon()
  reject,  // with `status`
  drop,    // close without a response
};

enum class Reason : std::uint8_t {
  allowed,                // every limit has room
  unmatched,              // no rule concerns it, and then requests pass
  limited,                // a limit is reached
  never,                  // it costs more than a limit ever has
  queue_full,             // a limit is reached, and as many as may wait are waiting
  blocked,                // a limit was reached before, and that costs some time
  allow_listed,           // a client that is not counted
  preflight,              // a CORS preflight, which is not counted
  deny_listed,            // a client that is rejected
  missing_value,          // a rule wants a value that is not there
  ambiguous_value,        // a rule counts by a value that the request states twice, differently
  unauthenticated,        // authentication is required
  ambiguous_credentials,  // two credentials of one kind: servers differ in which one they take
  no_rule,                // no rule concerns it, and then requests are rejected
  too_many_rules,         // more limits than one request may have
  bad_target,             // its path cannot be told
  store_failed,           // the store failed, and the rule rejects then
};
[[nodiscard]] std::string_view to_string(Reason reason) noexcept;

// One limit's word on the request.
struct LimitOutcome {
  const rules::Rule* rule = nullptr;
  const rules::RuleLimit* limit = nullptr;
  std::uint64_t amount = 0;  // in force: a claim or an override may have changed what is written
  Decision decision;
  bool shadow = false;  // log only
  store::Cost cost = 1;
};

// A worker's hold on its rules, counted without atomic operations: all that share it are of one
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
  const rules::Rule* rule = nullptr;  // that binds; null: none does
  Decision decision;                  // of its limit
  std::string_view source = "local";  // who decided

  [[nodiscard]] std::span<const LimitOutcome> limits() const noexcept {
    return std::span{outcomes_}.first(outcome_count_);
  }

  // Called when decide() said "later", once, by the worker.
  void (*completed)(Op&) noexcept = nullptr;
  void* owner = nullptr;

  [[nodiscard]] bool waiting() const noexcept { return stage_ == Stage::waiting; }

  // How often a request in flight has to be renewed; 0: never.
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

  // Who is asking, for the book of blocks: the request is gone when that is written.
  struct Label {
    std::uint16_t first = 0;
    std::uint16_t size = 0;
  };
  // A check of the store, and its rule.
  struct Asked {
    const Plan* plan = nullptr;
    const PlannedLimit* limit = nullptr;
    std::uint64_t amount = 0;
    std::uint64_t key = 0;  // of the rule, before its limits are told apart
    Label label;            // of rules that block
  };
  // What is to be done about a charge when the request is over.
  enum class Fate : std::uint8_t {
    stays,      // unless the response does not count
    in_flight,  // a lease, to be returned
    promised,   // it is made then, if the response counts
  };
  struct Held {
    store::Check check;  // its cost is what is charged by now
    store::Charge charge;
    const Plan* plan = nullptr;
    const PlannedLimit* limit = nullptr;  // of the rule, or of the client's tier
    store::Store* by = nullptr;           // who charged it
    Fate fate = Fate::stays;
    bool corrects = false;  // an additional charge, made when the cost was known
  };

  static constexpr Nanos kLeaseDefault{std::chrono::seconds{60}};
  // Of each kind: checks that may reject, those of both phases together, and checks of shadow
  // rules. resolve_rule() takes no rule whose limits would exceed it, every check has one outcome,
  // and one charge at most when all is decided: so what is kept of both kinds never overflows.
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
  std::size_t early_count_ = 0;  // checks that were asked before verification
  std::array<store::Check, kMost> shadow_checks_;
  std::array<Asked, kMost> shadows_;
  std::size_t shadow_count_ = 0;
  std::array<LimitOutcome, kMostOfBoth> outcomes_;
  std::size_t outcome_count_ = 0;
  std::array<Held, kMostOfBoth> held_;
  std::size_t held_count_ = 0;
  std::array<Amounts::Use*, kMostOfBoth> uses_;  // of numbers that the request brought along
  std::size_t use_count_ = 0;
  std::array<char, kLabelBytes> labels_;
  std::size_t label_bytes_ = 0;
};

}  // namespace sluice::engine
