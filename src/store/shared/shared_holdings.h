// What requests hold of shared limits: refunds, corrections, renewals.
//
// A refund needs no reply. More cost, or a renewed slot, gets another charge, and its name is known
// only with the reply. Until then the holding is a record of this class: the caller's Holding has
// its ticket and nothing else. The next call about it takes the record's content back, if the reply
// has come, or is noted there, the last correction in place of those before it: corrections name
// the whole cost. A refund, or keep(), that comes before the reply is carried out after it.
//
// Bounded. Without a record, more cost is charged for good, and a slot is not renewed.
//
// One thread.
#pragma once

#include "store/check.h"
#include "store/shared/authority.h"
#include "store/shared/shared_counts.h"
#include "store/shared/shared_limits.h"
#include "store/shared/ticket_pool.h"
#include "store/store.h"
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::store {

class SharedHoldings {
 public:
  // `ticket_bits` are added to the tickets that the authority gets.
  SharedHoldings(const SharedLimits& limits, Authority& authority, std::size_t records,
                 AuthorityTicket ticket_bits, StoreCounts& counts, SharedCounts& shared_counts);

  void refund(const Check& check, Holding& holding, Now now) noexcept;
  void correct(const Check& check, Holding& holding, Cost cost, Now now) noexcept;
  void renew(const Check& check, Holding& slot, Now now) noexcept;
  void keep(Holding& holding) noexcept;

  // Of a ticket of this class.
  void replied(AuthorityTicket ticket, AuthorityOutcome outcome, std::span<const Answer> answers,
               Now now) noexcept;

  // Charges without a record: what was forced, and cannot be given back.
  void charge_for_good(const Check& check, Cost cost, Now now) noexcept;

  [[nodiscard]] std::size_t in_use() const noexcept { return records_.used(); }

 private:
  enum class Awaited : std::uint8_t { nothing, charge, renewal };

  struct Record {
    Holding held;
    std::array<Charge, 2> further;  // what has no place in a holding: the record then stays
    Check check;
    Awaited awaited = Awaited::nothing;
    Cost added = 0;             // the charge that is awaited
    bool mark_is_lost = false;  // of a slot: it was renewed, but where is not known
    // What to do when the reply is in.
    bool corrects = false;
    Cost target = 0;
    bool refunds = false;
    bool renews = false;
    bool is_dropped = false;  // the caller's holding is gone
  };

  [[nodiscard]] Record* staying(Holding& holding) noexcept;
  [[nodiscard]] static std::array<Charge*, 4> parts_of(Record& record) noexcept;
  [[nodiscard]] std::uint32_t record_for(const Check& check, Holding& holding) noexcept;
  Cost give_back(const Check& check, std::span<Charge* const> parts, Cost cost, Now now) noexcept;
  void raise(std::uint32_t index, Cost cost, Now now) noexcept;
  void renew_record(std::uint32_t index, Now now) noexcept;
  void charged(Record& record, Cost added, AuthorityOutcome outcome,
               std::span<const Answer> answers) noexcept;
  void renewed(Record& record, AuthorityOutcome outcome, std::span<const Answer> answers) noexcept;
  void go_on(std::uint32_t index, Now now) noexcept;

  const SharedLimits& limits_;
  Authority& authority_;
  TicketPool<Record> records_;
  AuthorityTicket ticket_bits_;
  StoreCounts& counts_;
  SharedCounts& shared_counts_;
};

}  // namespace sluice::store
