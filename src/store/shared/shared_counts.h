// What happened to shared limits at a worker.
#pragma once

#include <cstdint>

namespace sluice::store {

struct SharedCounts {
  std::uint64_t asked = 0;     // groups that the authority was asked about
  std::uint64_t deadline = 0;  // groups without a reply within the decision budget
  std::uint64_t failed = 0;    // groups with a failure for a reply
  std::uint64_t breaker = 0;   // groups that did not wait: the breaker was open
  std::uint64_t breaker_opened = 0;
  std::uint64_t no_secret = 0;     // groups before the cluster's secret was known
  std::uint64_t no_room = 0;       // groups that found no place among those in flight
  std::uint64_t denied_until = 0;  // groups rejected by an earlier reply
  std::uint64_t given_back = 0;    // groups that were charged for a request that was not admitted
  std::uint64_t late_replies = 0;  // after the deadline or a cancel
  std::uint64_t settled = 0;       // cost that was spent in an outage and has been sent
  std::uint64_t settlements_dropped = 0;  // the same, without a place, or of a limit that is gone
  std::uint64_t settlements_expired = 0;  // the same, drained before the authority was back
  std::uint64_t charges_dropped = 0;  // cost that was to be charged or corrected, without a place
  std::uint64_t refunds_dropped = 0;  // refunds without a place: the charges stay
  std::uint64_t holdings_full = 0;    // corrections and renewals without a place
  std::uint64_t marks_lost = 0;       // charges that no refund will find: their reply was lost
};

}  // namespace sluice::store
