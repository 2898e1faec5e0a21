// One request in the engine, from its arrival to its settlement.
//
// Front ends keep ops and reuse them; a decision allocates nothing. An op owns a reference to the
// rules it was decided by and all of its charges. It has no views into the request: the request's
// buffer may be gone before the op is settled. What is needed only until the decision is not here
// (engine/deciding.h), so that an op is small: a connection may have a hundred of them.
//
//     idle -> decide() -> decided | waiting -> completed -> decided -> settle() -> idle
//
// One thread: the worker that decides it.
#pragma once

#include "base/small_list.h"
#include "engine/amounts.h"
#include "engine/snapshot.h"
#include "store/store.h"
#include <sluice/decision.h>
#include <sluice/time.h>

#include <chrono>
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
  store::Cost cost = 1;
  bool shadow = false;  // log only
  store::Source source = store::Source::local;
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
  std::uint16_t status = 200;                   // to reject with
  store::Source source = store::Source::local;  // where the binding limit was decided
  const rules::Rule* rule = nullptr;            // the binding one; null: none
  Decision decision;                            // of its limit

  [[nodiscard]] std::span<const LimitOutcome> limits() const noexcept { return outcomes_.all(); }

  // Called once, by the worker, if decide() returned "later".
  void (*completed)(Op&) noexcept = nullptr;
  void* owner = nullptr;

  [[nodiscard]] bool waiting() const noexcept { return stage_ == Stage::waiting; }

  // How often to renew a request in flight; 0: never.
  [[nodiscard]] Nanos renew_every() const noexcept {
    Nanos shortest{0};
    for (const Held& held : held_) {
      if (held.fate != Fate::in_flight) continue;
      const Nanos half = held.limit->written->limit.slot_ttl.value_or(kLeaseDefault) / 2;
      if (shortest == Nanos{0} || half < shortest) shortest = half;
    }
    return shortest;
  }

 private:
  friend class Decider;
  friend struct Deciding;

  enum class Stage : std::uint8_t { idle, deciding, waiting, decided };

  // What happens to a charge when the request ends.
  enum class Fate : std::uint8_t {
    stays,      // unless the response does not count
    in_flight,  // a slot, to be returned
    promised,   // charged then, if the response counts
  };
  struct Held {
    store::Check check;  // its cost is what was asked for
    store::Holding holding;
    const Plan* plan = nullptr;
    const PlannedLimit* limit = nullptr;  // of the rule, or of the client's tier
    Fate fate = Fate::stays;
  };

  static constexpr Nanos kLeaseDefault{std::chrono::seconds{60}};
  // Of most requests: more limits than that take memory of their own.
  static constexpr std::size_t kUsual = 3;

  Stage stage_ = Stage::idle;
  std::uint8_t late_shadows_ = 0;  // asked, and not completed yet
  Now asked_at_;
  SnapshotPin* pin_ = nullptr;
  class Decider* worker_ = nullptr;
  struct Deciding* deciding_ = nullptr;  // until the decision
  const Plan* queued_ = nullptr;         // by this rule, until it is released
  SmallList<LimitOutcome, kUsual> outcomes_;
  SmallList<Held, kUsual> held_;
  SmallList<Amounts::Use*, kUsual> uses_;  // numbers for the request's own amounts
};

}  // namespace sluice::engine
