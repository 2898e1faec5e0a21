// Small things that the files of the shared store have in common.
#pragma once

#include "store/check.h"
#include "store/shared/authority.h"
#include "store/shared/shared_limits.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace sluice::store {

// Tickets of the authority: bits 16 and 17 say who asked (TicketPool::name_of).
inline constexpr AuthorityTicket kHoldingTickets = AuthorityTicket{1} << 16U;
inline constexpr AuthorityTicket kSettleTickets = AuthorityTicket{2} << 16U;

// A check of a node's share, in the table. An edited number of nodes keeps what was used.
[[nodiscard]] inline Check share_check(const Check& check, LimitNumber share) noexcept {
  Check of_share = check;
  of_share.key.low ^= kShareSalt;
  of_share.limit = share;
  of_share.change = OnChange::keep;
  of_share.thread_leases = false;
  return of_share;
}

// Answers of a group that was charged, or counted as if, and then was not: what is left without it.
inline void add_costs_back(std::span<const Check> checks, std::span<Answer> answers) noexcept {
  for (std::size_t i = 0; i < checks.size(); ++i) {
    Decision& decision = answers[i].decision;
    decision.remaining =
        std::min<std::uint64_t>(decision.remaining + checks[i].cost, decision.limit);
    decision.delay = Nanos{0};
    answers[i].charge = {};
  }
}

}  // namespace sluice::store
