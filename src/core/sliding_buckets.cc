#include <sluice/core/sliding_buckets.h>
#include <sluice/int128.h>

#include <algorithm>

namespace sluice::core {
namespace {

// The slices as seen at an instant, without having touched them.
struct BucketsLook {
  std::int64_t now;    // the clock
  std::int64_t slice;  // where a request counts
  std::int64_t shift;  // how many slices the state has to move because the clock was set back
  Cost sum;            // of the counters in sight
};

Cost& counter(BucketsView state, std::int64_t slice) noexcept {
  const auto size = static_cast<std::int64_t>(state.counters.size());
  const std::int64_t place = slice - floor_div(slice, size) * size;
  return state.counters[static_cast<std::size_t>(place)];
}

std::int64_t oldest(BucketsView state, std::int64_t newest) noexcept {
  return newest - static_cast<std::int64_t>(state.counters.size()) + 1;
}

BucketsLook look(const BucketsLimit& limit, BucketsView state, WallTime now,
                 bool may_write = true) noexcept {
  const BucketsHeader& header = *state.header;
  const std::int64_t now_ns = now.time_since_epoch().count();
  BucketsLook seen{.now = now_ns,
                   .slice = floor_div(now_ns, limit.width.count()),
                   .shift = 0,
                   .sum = header.sum};
  if (seen.slice < header.newest) {
    const Nanos ahead = limit.width * header.newest - now.time_since_epoch();
    const bool set_back = clock_was_set_back(ahead, limit.period);
    if (set_back && may_write) seen.shift = header.newest - seen.slice;
    seen.slice = header.newest;
  }
  const std::int64_t out_of_sight = std::min(oldest(state, seen.slice) - 1, header.newest);
  for (std::int64_t n = oldest(state, header.newest); n <= out_of_sight; ++n) {
    seen.sum -= counter(state, n);
  }
  return seen;
}

// Until a slice is out of sight.
Nanos leaves_after(const BucketsLimit& limit, const BucketsLook& seen,
                   std::int64_t slice) noexcept {
  return limit.width * (slice - seen.shift + limit.slices + 1) - Nanos{seen.now};
}

Nanos retry_after(const BucketsLimit& limit, BucketsView state, const BucketsLook& seen,
                  Cost cost) noexcept {
  const std::uint64_t must_go = std::uint64_t{seen.sum} + cost - limit.amount;
  std::uint64_t gone = 0;
  std::int64_t slice = oldest(state, seen.slice);
  for (; slice < state.header->newest; ++slice) {
    gone += counter(state, slice);
    if (gone >= must_go) break;
  }
  return leaves_after(limit, seen, slice);
}

// Requires that something is counted.
std::int64_t newest_counted(BucketsView state) noexcept {
  std::int64_t slice = state.header->newest;
  while (counter(state, slice) == 0) --slice;
  return slice;
}

Nanos reset_after(const BucketsLimit& limit, BucketsView state, const BucketsLook& seen) noexcept {
  return seen.sum == 0 ? Nanos{0} : leaves_after(limit, seen, newest_counted(state));
}

Outcome answer(const BucketsLimit& limit, BucketsView state, const BucketsLook& seen,
               Verdict verdict) noexcept {
  return {.decision = {.verdict = verdict,
                       .limit = limit.amount,
                       .remaining = room_left(limit.amount, seen.sum),
                       .reset_after = reset_after(limit, state, seen),
                       .retry_after = std::nullopt},
          .receipt = {}};
}

// Writes down what `look` saw: counters out of sight go, slices from the future move to now.
BucketsLook settle(BucketsView state, BucketsLook seen) noexcept {
  BucketsHeader& header = *state.header;
  if (seen.shift > 0) {
    const auto size = static_cast<std::int64_t>(state.counters.size());
    std::rotate(state.counters.begin(), state.counters.begin() + seen.shift % size,
                state.counters.end());
    seen.slice -= seen.shift;
    seen.shift = 0;
  } else if (oldest(state, seen.slice) > header.newest) {
    std::fill(state.counters.begin(), state.counters.end(), Cost{0});
  } else {
    for (std::int64_t n = header.newest + 1; n <= seen.slice; ++n) counter(state, n) = 0;
  }
  header.newest = seen.slice;
  header.sum = seen.sum;
  return seen;
}

void add(BucketsView state, BucketsLook& seen, Cost cost) noexcept {
  counter(state, seen.slice) += cost;
  state.header->sum += cost;
  seen.sum += cost;
}

void drop_oldest(BucketsView state, Cost cost) noexcept {
  state.header->sum -= cost;
  for (std::int64_t n = oldest(state, state.header->newest); cost > 0; ++n) {
    const Cost taken = std::min(cost, counter(state, n));
    counter(state, n) -= taken;
    cost -= taken;
  }
}

// As much of the cost as fits after pushing out the oldest counts. Answers how much more is counted
// than before, which is what a refund may take out: those pushed out stay counted.
Cost add_saturating(const BucketsLimit& limit, BucketsView state, BucketsLook& seen,
                    Cost cost) noexcept {
  const Cost charged = std::min(cost, limit.amount);
  const Cost room = room_left(limit.amount, seen.sum);
  if (charged > room) {
    drop_oldest(state, charged - room);
    seen.sum -= charged - room;
  }
  add(state, seen, charged);
  return std::min(charged, room);
}

}  // namespace

Outcome sliding_buckets_step(const BucketsLimit& limit, BucketsView state, WallTime now,
                             Cost cost) noexcept {
  BucketsLook seen = look(limit, state, now, writes(cost, limit.amount));
  if (cost == 0) return answer(limit, state, seen, Verdict::allowed);
  if (cost > limit.amount) return answer(limit, state, seen, Verdict::never);

  if (cost <= room_left(limit.amount, seen.sum)) {
    seen = settle(state, seen);
    add(state, seen, cost);
    Outcome admitted = answer(limit, state, seen, Verdict::allowed);
    admitted.receipt = {.mark = seen.slice, .cost = cost};
    return admitted;
  }

  if (limit.count_rejected || seen.shift > 0) seen = settle(state, seen);
  if (limit.count_rejected) add_saturating(limit, state, seen, cost);
  Outcome refused = answer(limit, state, seen, Verdict::rejected);
  refused.decision.retry_after = retry_after(limit, state, seen, cost);
  return refused;
}

Outcome sliding_buckets_charge(const BucketsLimit& limit, BucketsView state, WallTime now,
                               Cost cost) noexcept {
  BucketsLook seen = settle(state, look(limit, state, now));
  const Cost charged = add_saturating(limit, state, seen, cost);
  Outcome outcome = answer(limit, state, seen, Verdict::allowed);
  outcome.receipt = {.mark = charged > 0 ? seen.slice : 0, .cost = charged};
  return outcome;
}

void sliding_buckets_refund(BucketsView state, Receipt receipt, Cost amount) noexcept {
  BucketsHeader& header = *state.header;
  if (receipt.mark < oldest(state, header.newest) || receipt.mark > header.newest) return;
  Cost& charged = counter(state, receipt.mark);
  const Cost given = std::min({amount, receipt.cost, charged});
  charged -= given;
  header.sum -= given;
}

void sliding_buckets_convert(const BucketsLimit& from, const BucketsLimit& to, BucketsView state,
                             WallTime now, OnChange change) noexcept {
  const BucketsLook seen =
      settle(state, look(from, state, now));  // what has expired is not used any more
  const Cost kept = converted_count(from.amount, to.amount, seen.sum, change);
  if (kept < seen.sum) {
    drop_oldest(state, seen.sum - kept);
  } else if (kept > seen.sum) {
    counter(state, newest_counted(state)) += kept - seen.sum;
    state.header->sum = kept;
  }
}

}  // namespace sluice::core
