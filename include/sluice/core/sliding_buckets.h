// Sliding buckets: the window in slices, each slice a counter.
//
// The period is covered by k = ceil(period / width) whole slices and the slice that is partly
// expired, which counts in full. So at most `amount` is admitted in any window of one period; the
// price is that a saturating client gets k / (k + 1) of its rate. Finer slices cost memory.
//
// Time base: wall, slices aligned to the epoch. A step forward ages the slices. After a step back,
// requests count into the newest slice; after a step of more than a minute and a period the slices
// move as a whole, newest to now.
//
// The state lives in the caller's memory and is changed in place; a peek or a rejection writes
// nothing.
#pragma once

#include <sluice/core/step.h>

#include <cstdint>
#include <span>

namespace sluice::core {

inline constexpr std::int64_t kSlicesMax = 4096;

struct BucketsLimit {
  Cost amount = 1;
  Nanos period{1};
  Nanos width{1};           // of a slice
  std::int64_t slices = 1;  // ceil(period / width), at most kSlicesMax
  bool count_rejected = false;
};

// All zeros is an idle key.
struct BucketsHeader {
  std::int64_t newest = 0;  // number of the newest slice since the epoch
  Cost sum = 0;  // of all counters, expired ones included; more than the amount only after that was
                 // lowered

  friend constexpr bool operator==(const BucketsHeader&, const BucketsHeader&) = default;
};

// Exactly slices + 1 counters; slice n counts in counters[n % size].
struct BucketsView {
  BucketsHeader* header;
  std::span<Cost> counters;
};

[[nodiscard]] Outcome sliding_buckets_step(const BucketsLimit& limit, BucketsView state,
                                           WallTime now, Cost cost) noexcept;

// Forced charges push out the oldest counts when there is no room.
[[nodiscard]] Outcome sliding_buckets_charge(const BucketsLimit& limit, BucketsView state,
                                             WallTime now, Cost cost) noexcept;
void sliding_buckets_refund(BucketsView state, Receipt receipt, Cost amount) noexcept;

// Both limits have the same slices, or the state has to be carried over as a charge instead. A
// share that grows is added to the newest count; if it shrinks, the oldest lose it.
void sliding_buckets_convert(const BucketsLimit& from, const BucketsLimit& to, BucketsView state,
                             WallTime now, OnChange change) noexcept;

}  // namespace sluice::core
