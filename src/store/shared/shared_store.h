// The store of a worker whose node shares limits with others.
//
// Calls with local limits alone go to the table, at the cost of looking at their numbers. Of other
// calls, the local limits are looked at first, then the authority is asked about all shared groups
// at once, and the local limits are charged last. If one rejects, those that were charged are given
// back. Where the authority does not reply within the decision budget, or the breaker does not let
// requests wait for it, the group follows its limits' `on_failure`:
//
//  - share: the node's share decides, a limit of the table
//  - open: the group does not apply
//  - closed: the request is to be rejected with 503
//
// What was admitted by share or open is charged at the authority when it is back. A reply that
// comes too late and says that it charged stands for that; if the request was not admitted, or was
// cancelled, the charge is given back. So each admitted request is charged once, if it is known
// what became of it, and more than once rather than not at all.
//
// Invariants. A call in flight has one Flight. Each group that was asked has one Asked from the
// moment it is sent until its reply, which may be later than the call. No decision allocates once
// the records have been used. All tables and pools are bounded, and SharedCounts says what found no
// place.
//
// One thread.
#pragma once

#include "base/random.h"
#include "store/local/local_authority.h"
#include "store/shared/authority.h"
#include "store/shared/breaker.h"
#include "store/shared/denied_until.h"
#include "store/shared/settlements.h"
#include "store/shared/shared_counts.h"
#include "store/shared/shared_holdings.h"
#include "store/shared/shared_limits.h"
#include "store/shared/ticket_pool.h"
#include "store/store.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::store {

struct SharedStoreOptions {
  Nanos budget = std::chrono::milliseconds{20};     // for a decision
  std::uint64_t seed = 0;                           // of the jitter
  std::uint32_t failures_max = Breaker::kFailures;  // consecutive ones, then the breaker opens
  unsigned workers = 1;                             // that run in parallel

  // Powers of two where they are tables.
  std::size_t calls_max = 1024;        // in flight
  std::size_t groups_max = 4096;       // asked, and not replied to
  std::size_t late_charges_max = 256;  // of these: replied to late, and may be refunded
  std::size_t holdings_max = 8192;     // corrected or renewed
  std::size_t settlements_max = 4096;  // keys
  std::size_t denied_max = 512;        // keys
};

class SharedStore : public Store, private AuthorityListener {
 public:
  // All of them outlive the store.
  SharedStore(LocalStore& table, const SharedLimits& limits, Authority& authority,
              const SharedStoreOptions& options);
  ~SharedStore() override = default;

  [[nodiscard]] Completion decide_all(Call& call, Now now) noexcept override;
  void expect(const Digest& key) noexcept override { local_.expect(key); }
  void cancel(Call& call, Now now) noexcept override;

  void charge(const Check& check, Now now) noexcept override;
  void refund(const Check& check, Holding& holding, Now now) noexcept override;
  void correct(const Check& check, Holding& holding, Cost cost, Now now) noexcept override;
  void renew(const Check& check, Holding& slot, Now now) noexcept override;

  void advance(Now now) noexcept override;
  [[nodiscard]] MonoTime wake_at() const noexcept override;
  void wait() noexcept override;

  [[nodiscard]] const StoreCounts& counts() const noexcept override;
  [[nodiscard]] const SharedCounts& shared_counts() const noexcept { return shared_counts_; }

  // How much is kept at the moment, for tests and metrics.
  [[nodiscard]] std::size_t calls_in_flight() const noexcept { return flights_.used(); }
  // Without a reply; and those that are kept because their late charges may be refunded.
  [[nodiscard]] std::size_t groups_asked() const noexcept { return asked_.used() - late_count_; }
  [[nodiscard]] std::size_t late_charges() const noexcept { return late_count_; }
  [[nodiscard]] std::size_t holdings_in_use() const noexcept { return holdings_.in_use(); }
  [[nodiscard]] std::size_t settlements_waiting() const noexcept { return settlements_.size(); }

 private:
  using Index = std::uint32_t;

  void drop(Holding& holding) noexcept override { holdings_.keep(holding); }

  // Where a group of a call stands.
  enum class Standing : std::uint8_t {
    local,
    to_ask,
    waiting,
    admitted,  // by the authority, and charged there
    rejected,
    share,  // the authority failed, from here on
    open,
    closed,
  };

  struct Flight {
    Call* call = nullptr;
    MonoTime deadline;
    Index earlier = 0;
    Index later = 0;
    std::uint8_t waiting = 0;  // groups
    bool is_ready = false;     // in the list of those to be completed
    bool is_rejected = false;  // all or nothing: a group has rejected, or is closed
    bool has_room = false;     // all or nothing: the table has been looked at, and would admit
    bool fell_back = false;    // a group follows its on_failure
    std::array<Standing, kCallChecksMax> standings;
    std::array<Index, kCallChecksMax> asked;  // what was asked about each group; 0: nothing
    // Of checks whose groups fell back to shares. Kept, since the number of nodes may change.
    std::array<LimitNumber, kCallChecksMax> shares;
  };

  // A group of which a reply may still come.
  struct Asked {
    // What a charge that comes too late means.
    enum class IfCharged : std::uint8_t {
      give_back,  // the request was not admitted, or nobody wants it any more
      replaces_settlement,
    };
    std::vector<Check> checks;
    std::vector<Charge> charges;  // of a late reply that replaced the settlement
    std::uint32_t refunded = 0;   // a bit for each check that the request has given back since
    Digest key;
    MonoTime since;
    Index flight = 0;  // 0: the call has been completed or cancelled
    std::uint8_t group = 0;
    std::uint8_t shard = 0;
    bool is_late = false;  // the budget was over before
    bool is_kept = false;  // replied to: only its charges matter any more
    Index earlier = 0;     // among those that are kept
    Index later = 0;
    IfCharged if_charged = IfCharged::give_back;
  };

  // shared_store.cc: calls
  [[nodiscard]] Completion decide_shared(Call& call, Now now) noexcept;
  void look_at_groups(Flight& flight, Index index, Now now) noexcept;
  [[nodiscard]] Standing first_look(Flight& flight, Index index, std::size_t at, Now now) noexcept;
  void look_at_table(Flight& flight, Now now) noexcept;
  void ask_groups(Flight& flight, Index index, Now now) noexcept;
  void fall_back(Flight& flight, std::size_t at, Now now) noexcept;
  [[nodiscard]] Standing on_failure(Flight& flight, std::size_t at) const noexcept;
  void finish(Flight& flight, Now now) noexcept;
  void finish_group(Flight& flight, std::size_t at, bool admitted, Now now) noexcept;
  void expire(Index index, Now now) noexcept;
  void make_ready(Index index) noexcept;
  void complete_ready(Now now) noexcept;

  // shared_groups.cc: what becomes of a group
  [[nodiscard]] bool decide_in_table(Flight& flight, bool probe, Now now) noexcept;
  void decide_apart(Flight& flight, std::size_t at, Now now) noexcept;
  std::size_t table_checks_of(const Flight& flight, std::size_t at, std::size_t to) noexcept;
  void take_table_answers(Flight& flight, std::size_t at, std::size_t from) noexcept;
  [[nodiscard]] bool ask(Flight& flight, Index index, std::size_t at, Now now) noexcept;
  void replied(AuthorityTicket ticket, AuthorityOutcome outcome, std::span<Answer> answers,
               Now now) noexcept override;
  void answered(Flight& flight, Asked& asked, AuthorityOutcome outcome,
                std::span<const Answer> answers, Now now) noexcept;
  [[nodiscard]] bool answered_late(Asked& asked, AuthorityOutcome outcome,
                                   std::span<const Answer> answers, Now now) noexcept;
  void keep_late(Index place) noexcept;
  void remember_rejection(const Asked& asked, std::span<const Answer> answers) noexcept;
  [[nodiscard]] bool rejections_last(std::span<const Check> checks) const noexcept;
  void note_success(const Asked& asked, Now now) noexcept;
  void note_failure(Asked& asked, Now now) noexcept;
  void let_go(Flight& flight, std::size_t at, bool admitted, Now now) noexcept;

  // shared_charges.cc: what is given back, what is settled
  void give_back(Call& call, const Group& group, Now now) noexcept;
  void give_back_to_authority(std::span<const Check> checks, std::span<const Answer> answers,
                              Now now) noexcept;
  [[nodiscard]] bool refund_late(const Check& check, const Holding& holding, Now now) noexcept;
  void add_settlement(const Check& check, Cost cost, Now now) noexcept;
  void settle(Now now) noexcept;
  [[nodiscard]] bool settle_next(Now now) noexcept;
  [[nodiscard]] bool is_under_share(const Check& check, const Holding& holding) const noexcept;

  // Callers that were completed later act with the time of their request. Deadlines are in the
  // order of calls, so time never goes back here.
  [[nodiscard]] Now latest(Now now) const noexcept {
    return now.mono < last_turn_.mono ? last_turn_ : now;
  }
  static std::span<const Check> checks_of(const Call& call, const Group& group) noexcept {
    return call.asked().subspan(group.first, group.count);
  }
  static std::span<Answer> answers_of(Call& call, const Group& group) noexcept {
    return call.answered().subspan(group.first, group.count);
  }
  [[nodiscard]] Breaker& breaker_of(const Digest& key) noexcept {
    return breakers_[authority_.shard_of(key)];
  }

  LocalStore& table_;
  const SharedLimits& limits_;
  Authority& authority_;
  const Nanos budget_;
  Random random_;
  LocalAuthority local_;

  StoreCounts own_counts_;
  SharedCounts shared_counts_;
  mutable StoreCounts all_counts_;

  TicketPool<Flight> flights_;
  TicketList<Flight> in_flight_{flights_};  // by deadline
  TicketList<Flight> ready_{flights_};
  TicketPool<Asked> asked_;
  TicketList<Asked> late_{asked_};  // kept, the oldest first
  const std::size_t late_max_;
  std::size_t late_count_ = 0;
  std::array<Breaker, Authority::kShardsMax> breakers_;
  DeniedUntil denied_;
  Settlements settlements_;
  std::size_t settling_ = 0;  // calls without a reply
  Now last_turn_;             // of the worker's loop
  SharedHoldings holdings_;

  // For one decision in the table.
  std::array<Check, kCallChecksMax> table_checks_;
  std::array<Answer, kCallChecksMax> table_answers_;
};

}  // namespace sluice::store
