// Checks and results of stores.
//
// A store knows keys as digests and limits as numbers that it assigned itself.
#pragma once

#include "base/digest.h"
#include <sluice/core/step.h>
#include <sluice/decision.h>
#include <sluice/limit.h>

#include <cstdint>

namespace sluice::store {

using core::Cost;
using core::Receipt;

using LimitNumber = std::uint32_t;
inline constexpr LimitNumber kLimitNumbers = (1U << 24U) - 1;

// One limit for one request.
struct Check {
  Digest key;  // the first half suffices
  LimitNumber limit = 0;
  Cost cost = 1;
  OnChange change = OnChange::keep;  // how to treat a state that another limit wrote
  OnTableFull on_table_full = OnTableFull::approximate;

  bool probe = false;  // only whether it would be admitted: nothing is charged

  // For stores with a cache of their own.
  bool may_be_refunded = false;  // a rejection may end before its time
  bool thread_leases = false;    // may be leased, see store/local/thread_cache.h
};

// A charge that may be refunded, once: as a whole, or part by part, if the receipt's cost is
// lowered by the refunded part.
struct Charge {
  LimitNumber limit = 0;  // that issued the receipt
  Receipt receipt;
};

struct Answer {
  Decision decision;
  Charge charge;
};

}  // namespace sluice::store
