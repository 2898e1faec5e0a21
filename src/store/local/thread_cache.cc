#include "store/local/thread_cache.h"

#include <sluice/core/compiled_limit.h>
#include <sluice/int128.h>

#include <algorithm>

namespace sluice::store {
namespace {

// An earlier decision, adjusted to now.
Decision later(Decision decision, Nanos by) noexcept {
  decision.reset_after = std::max(decision.reset_after - by, Nanos{0});
  if (decision.retry_after) *decision.retry_after -= by;
  return decision;
}

}  // namespace

Cost ThreadCache::lease_size(const Limit& limit, unsigned workers) noexcept {
  const bool can_be_shared_out = limit.algorithm != Algorithm::concurrency &&
                                 !limit.count_rejected && !limit.max_delay &&
                                 limit.period > Nanos{0};
  if (!can_be_shared_out) return 0;
  const std::uint64_t fair = core::capacity(limit) / (4ULL * std::max(workers, 1U));
  const std::int64_t soon = mul_div_floor(static_cast<std::int64_t>(limit.amount),
                                          kLeaseFor.count(), limit.period.count());
  return static_cast<Cost>(std::min(fair, static_cast<std::uint64_t>(soon)));
}

void ThreadCache::decide(const Check& check, Use use, Now now, Answer& answer) noexcept {
  if (const Refusal* known = refusal(check, now)) {
    ++counters_.refused_again;
    answer = {.decision = later(known->decision, now.mono - known->seen), .charge = {}};
    return;
  }
  if (use.thread_leases && check.cost > 0) {
    answer = decide_leased(check, now);
    return;
  }
  const std::uint32_t epoch = store_->epoch(check.limit);  // first: a refund meanwhile voids it
  store_->decide(check, now, answer);
  if (use.remember_refusals) remember(check, answer.decision, epoch, now);
}

const ThreadCache::Refusal* ThreadCache::refusal(const Check& check, Now now) const noexcept {
  const Refusal& known = refusals_[place_of(check.key)];
  const bool same = known.key == check.key && known.limit == check.limit && check.cost == 1;
  if (!same || now.mono < known.seen || now.mono >= known.until) return nullptr;
  return known.epoch == store_->epoch(check.limit) ? &known : nullptr;
}

void ThreadCache::remember(const Check& check, const Decision& refused, std::uint32_t epoch,
                           Now now) noexcept {
  if (refused.verdict != Verdict::rejected || !refused.retry_after || check.cost != 1) return;
  if (store_->limit(check.limit).limit().count_rejected) return;  // all rejections are counted
  refusals_[place_of(check.key)] = {.key = check.key,
                                    .limit = check.limit,
                                    .epoch = epoch,
                                    .seen = now.mono,
                                    .until = now.mono + std::min(*refused.retry_after, kRefusedFor),
                                    .decision = refused};
}

// Without this, unspent units would add up and use up the limit by themselves.
void ThreadCache::give_back(Lease& lease, Now now) noexcept {
  if (lease.left > 0 && lease.epoch == store_->epoch(lease.limit)) {
    const Check check{.key = lease.key, .limit = lease.limit, .cost = lease.left};
    store_->give_back(check, lease.charge, now);
  }
  lease.left = 0;
}

Answer ThreadCache::decide_leased(const Check& check, Now now) noexcept {
  Lease& lease = leases_[place_of(check.key)];
  const std::uint32_t epoch = store_->epoch(check.limit);
  const bool ours = lease.key == check.key && lease.limit == check.limit && lease.epoch == epoch &&
                    now.mono >= lease.taken && now.mono < lease.taken + kLeaseFor;
  if (ours && lease.left >= check.cost) {
    lease.left -= check.cost;
    ++counters_.leased;
    Decision decision = later(lease.decision, now.mono - lease.taken);
    decision.remaining += lease.left;
    return {.decision = decision, .charge = {}};
  }

  give_back(lease, now);
  const Limit& limit = store_->limit(check.limit).limit();
  const Cost ahead = lease_size(limit, workers_);
  // A cost above the capacity must not become small by overflow of the addition.
  if (ahead > 0 && check.cost <= core::capacity(limit)) {
    Check more = check;
    more.cost += ahead;
    const Answer taken = store_->decide(more, now);
    if (taken.decision.allowed()) {
      lease = {.key = check.key,
               .limit = check.limit,
               .epoch = epoch,
               .left = ahead,
               .taken = now.mono,
               .decision = taken.decision,
               .charge = taken.charge};
      Decision decision = taken.decision;
      decision.remaining += ahead;
      return {.decision = decision, .charge = {}};
    }
  }
  const Answer answer = store_->decide(check, now);
  remember(check, answer.decision, epoch, now);
  return answer;
}

}  // namespace sluice::store
