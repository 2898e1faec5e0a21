#include "support/models.h"

#include <algorithm>

namespace sluice::testing {
namespace {

Nanos nanos(const BigInt& value) { return Nanos{value.get_si()}; }

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  return floor_of(Rational{a} / b).get_si();
}

Decision answer(Verdict verdict, std::uint64_t limit, std::uint64_t remaining, Nanos reset_after) {
  Decision decision;
  decision.verdict = verdict;
  decision.limit = limit;
  decision.remaining = remaining;
  decision.reset_after = reset_after;
  return decision;
}

// What a request gets, once it is known whether there is room for it.
Verdict verdict_of(std::uint64_t capacity, std::uint32_t cost, bool fits) {
  if (cost == 0) return Verdict::allowed;
  if (cost > capacity) return Verdict::never;
  return fits ? Verdict::allowed : Verdict::rejected;
}

}  // namespace

BigInt floor_of(const Rational& value) {
  BigInt quotient = value.get_num() / value.get_den();
  if (value < 0 && quotient * value.get_den() != value.get_num()) --quotient;
  return quotient;
}

BigInt ceil_of(const Rational& value) { return -floor_of(Rational{-value}); }

// ---- buckets

void BucketModel::refill(std::int64_t now) {
  tokens_ += Rational{now - last_} / numbers_.interval;
  if (tokens_ > numbers_.burst) tokens_ = numbers_.burst;
  last_ = now;
}

bool BucketModel::take(std::int64_t now, std::uint32_t cost) {
  refill(now);
  tokens_ -= cost;
  return tokens_ * numbers_.interval >= -numbers_.max_delay;
}

Decision BucketModel::decide(std::int64_t now, std::uint32_t cost) {
  refill(now);
  const Rational lowest = -Rational{numbers_.max_delay} / numbers_.interval;
  const Verdict verdict = verdict_of(numbers_.burst, cost, tokens_ - cost >= lowest);
  if (verdict == Verdict::allowed) tokens_ -= cost;
  if (verdict == Verdict::rejected && numbers_.count_rejected && tokens_ > 0) {
    tokens_ = std::max(Rational{tokens_ - cost}, Rational{0});
  }
  const Rational at_once = std::max(tokens_, Rational{0});
  Decision decision = answer(verdict, numbers_.burst, floor_of(at_once).get_ui(),
                             nanos(ceil_of((numbers_.burst - tokens_) * numbers_.interval)));
  if (verdict == Verdict::rejected) {
    decision.retry_after = nanos(ceil_of((lowest + cost - tokens_) * numbers_.interval));
  }
  if (verdict == Verdict::allowed && cost > 0 && tokens_ < 0) {
    decision.delay = nanos(ceil_of(-tokens_ * numbers_.interval));
  }
  return decision;
}

// ---- interval refill

Nanos IntervalModel::wait_for(std::int64_t now, const BigInt& missing) const {
  if (missing <= 0) return Nanos{0};
  const BigInt periods = ceil_of(Rational{missing} / numbers_.amount);
  return nanos((period_seen_ + periods) * numbers_.period - now);
}

Decision IntervalModel::decide(std::int64_t now, std::uint32_t cost) {
  const std::int64_t period = floor_quotient(now, numbers_.period);
  tokens_ += BigInt{period - period_seen_} * numbers_.amount;
  if (tokens_ > numbers_.burst) tokens_ = numbers_.burst;
  period_seen_ = period;

  const Verdict verdict = verdict_of(numbers_.burst, cost, tokens_ >= cost);
  if (verdict == Verdict::allowed) tokens_ -= cost;
  if (verdict == Verdict::rejected && numbers_.count_rejected) tokens_ = 0;
  Decision decision =
      answer(verdict, numbers_.burst, tokens_.get_ui(), wait_for(now, numbers_.burst - tokens_));
  if (verdict == Verdict::rejected) decision.retry_after = wait_for(now, cost - tokens_);
  return decision;
}

// ---- fixed windows

WindowModel::Grid WindowModel::epoch(std::int64_t period) {
  return [period](std::int64_t now) {
    const std::int64_t start = floor_quotient(now, period) * period;
    return std::pair{start, start + period};
  };
}

Decision WindowModel::decide(std::int64_t now, std::uint32_t cost) {
  const auto [start, end] = numbers_.window(now);
  std::uint64_t& count = counts_[start];
  const Verdict verdict = verdict_of(numbers_.amount, cost, count + cost <= numbers_.amount);
  if (verdict == Verdict::allowed) count += cost;
  if (verdict == Verdict::rejected && numbers_.count_rejected) count = numbers_.amount;
  Decision decision = answer(verdict, numbers_.amount, numbers_.amount - count,
                             count > 0 ? Nanos{end - now} : Nanos{0});
  if (verdict == Verdict::rejected) decision.retry_after = Nanos{end - now};
  return decision;
}

Decision FirstRequestModel::decide(std::int64_t now, std::uint32_t cost) {
  const bool open = !counts_.empty() && now < counts_.rbegin()->first + numbers_.period;
  const std::int64_t end = (open ? counts_.rbegin()->first : now) + numbers_.period;
  std::uint64_t count = open ? counts_.rbegin()->second : 0;
  const Verdict verdict = verdict_of(numbers_.amount, cost, count + cost <= numbers_.amount);
  if (verdict == Verdict::allowed) count += cost;
  if (verdict == Verdict::rejected && numbers_.count_rejected) count = numbers_.amount;
  if (count > 0) counts_[end - numbers_.period] = count;
  Decision decision = answer(verdict, numbers_.amount, numbers_.amount - count,
                             count > 0 ? Nanos{end - now} : Nanos{0});
  if (verdict == Verdict::rejected) decision.retry_after = Nanos{end - now};
  return decision;
}

// ---- sliding log

std::uint64_t LogModel::sum_at(std::int64_t now) const {
  std::uint64_t sum = 0;
  for (const auto& [at, cost] : admitted_) {
    if (at > now - numbers_.period) sum += cost;
  }
  return sum;
}

std::optional<std::int64_t> LogModel::first_instant(std::int64_t now,
                                                    std::uint64_t sum_at_most) const {
  if (sum_at(now) <= sum_at_most) return now;
  for (const auto& [at, cost] : admitted_) {  // ascending
    const std::int64_t leaves = at + numbers_.period;
    if (leaves > now && sum_at(leaves) <= sum_at_most) return leaves;
  }
  return std::nullopt;
}

void LogModel::push_out(std::int64_t now, std::uint64_t cost) {
  for (auto& [at, held] : admitted_) {
    if (at <= now - numbers_.period) continue;
    const std::uint64_t taken = std::min(held, cost);
    held -= taken;
    cost -= taken;
  }
}

Decision LogModel::decide(std::int64_t now, std::uint32_t cost) {
  const std::uint64_t sum = sum_at(now);
  const Verdict verdict = verdict_of(numbers_.amount, cost, sum + cost <= numbers_.amount);
  if (verdict == Verdict::rejected && numbers_.count_rejected) {
    push_out(now, sum + cost - numbers_.amount);
    admitted_.emplace_back(now, cost);
  }
  if (verdict == Verdict::allowed && cost > 0) admitted_.emplace_back(now, cost);
  Decision decision = answer(verdict, numbers_.amount, numbers_.amount - sum_at(now),
                             Nanos{first_instant(now, 0).value() - now});
  if (verdict == Verdict::rejected) {
    decision.retry_after = Nanos{first_instant(now, numbers_.amount - cost).value() - now};
  }
  return decision;
}

// ---- sliding counter

std::uint64_t CounterModel::count(std::int64_t window) const {
  const auto found = counts_.find(window);
  return found == counts_.end() ? 0 : found->second;
}

Rational CounterModel::estimate(std::int64_t now) const {
  const std::int64_t window = floor_quotient(now, numbers_.period);
  const Rational in_sight = 1 - Rational{now - window * numbers_.period} / numbers_.period;
  return count(window - 1) * in_sight + count(window);
}

// The estimate never rises while nothing is admitted, and is 0 after two windows: halve.
Nanos CounterModel::wait_until(std::int64_t now, const Rational& estimate_at_most) const {
  if (estimate(now) <= estimate_at_most) return Nanos{0};
  std::int64_t too_early = 0;
  std::int64_t enough = 2 * numbers_.period;
  while (enough - too_early > 1) {
    const std::int64_t middle = too_early + (enough - too_early) / 2;
    (estimate(now + middle) <= estimate_at_most ? enough : too_early) = middle;
  }
  return Nanos{enough};
}

Decision CounterModel::decide(std::int64_t now, std::uint32_t cost) {
  const std::int64_t window = floor_quotient(now, numbers_.period);
  const bool fits = estimate(now) + cost <= numbers_.amount;
  const Verdict verdict = verdict_of(numbers_.amount, cost, fits);
  if (verdict == Verdict::allowed && cost > 0) counts_[window] += cost;
  if (verdict == Verdict::rejected && numbers_.count_rejected) {
    counts_[window] = std::min(count(window) + cost, numbers_.amount);
  }
  const Rational left = std::max(Rational{numbers_.amount - estimate(now)}, Rational{0});
  Decision decision = answer(verdict, numbers_.amount, floor_of(left).get_ui(), wait_until(now, 0));
  if (verdict == Verdict::rejected) {
    decision.retry_after = wait_until(now, Rational{numbers_.amount - cost});
  }
  return decision;
}

// ---- sliding buckets

std::int64_t SlicesModel::gone_at(std::int64_t slice) const {
  const std::int64_t whole = ceil_of(Rational{numbers_.period} / numbers_.width).get_si();
  return (slice + whole + 1) * numbers_.width;
}

std::uint64_t SlicesModel::sum_at(std::int64_t now) const {
  std::uint64_t sum = 0;
  for (const auto& [slice, count] : counts_) {
    if (gone_at(slice) > now) sum += count;
  }
  return sum;
}

std::int64_t SlicesModel::first_instant(std::int64_t now, std::uint64_t sum_at_most) const {
  if (sum_at(now) <= sum_at_most) return now;
  for (const auto& [slice, count] : counts_) {
    if (gone_at(slice) > now && sum_at(gone_at(slice)) <= sum_at_most) return gone_at(slice);
  }
  return -1;
}

void SlicesModel::push_out(std::int64_t now, std::uint64_t cost) {
  for (auto& [slice, count] : counts_) {
    if (gone_at(slice) <= now) continue;
    const std::uint64_t taken = std::min(count, cost);
    count -= taken;
    cost -= taken;
  }
}

Decision SlicesModel::decide(std::int64_t now, std::uint32_t cost) {
  const std::int64_t slice = floor_quotient(now, numbers_.width);
  const std::uint64_t sum = sum_at(now);
  const Verdict verdict = verdict_of(numbers_.amount, cost, sum + cost <= numbers_.amount);
  if (verdict == Verdict::rejected && numbers_.count_rejected) {
    push_out(now, sum + cost - numbers_.amount);
    counts_[slice] += cost;
  }
  if (verdict == Verdict::allowed && cost > 0) counts_[slice] += cost;
  Decision decision = answer(verdict, numbers_.amount, numbers_.amount - sum_at(now),
                             Nanos{first_instant(now, 0) - now});
  if (verdict == Verdict::rejected) {
    decision.retry_after = Nanos{first_instant(now, numbers_.amount - cost) - now};
  }
  return decision;
}

// ---- concurrency

std::int64_t LeaseModel::lapse(std::int64_t now) const {
  return (floor_quotient(now, numbers_.slot_ttl) + 2) * numbers_.slot_ttl;
}

std::uint64_t LeaseModel::in_flight(std::int64_t now) const {
  std::uint64_t sum = 0;
  for (const Lease& lease : leases_) {
    if (lease.lapses_at > now) sum += lease.cost;
  }
  return sum;
}

void LeaseModel::release(std::size_t lease) { leases_[lease].cost = 0; }

bool LeaseModel::renew(std::int64_t now, std::size_t lease) {
  if (leases_[lease].cost == 0 || leases_[lease].lapses_at <= now) return false;
  leases_[lease].lapses_at = lapse(now);
  return true;
}

Decision LeaseModel::decide(std::int64_t now, std::uint32_t cost) {
  const bool fits = in_flight(now) + cost <= numbers_.amount;
  const Verdict verdict = verdict_of(numbers_.amount, cost, fits);
  if (verdict == Verdict::allowed && cost > 0) leases_.push_back({cost, lapse(now)});
  std::int64_t last_lapse = now;
  for (const Lease& lease : leases_) {
    if (lease.cost > 0) last_lapse = std::max(last_lapse, lease.lapses_at);
  }
  return answer(verdict, numbers_.amount, numbers_.amount - in_flight(now),
                Nanos{last_lapse - now});
}

// ---- any limit

std::unique_ptr<Model> model_of(const Limit& limit, WindowModel::Grid calendar) {
  const std::int64_t period = limit.period.count();
  const AmountPerPeriod numbers{
      .amount = limit.amount, .period = period, .count_rejected = limit.count_rejected};
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      if (limit.refill == Refill::interval) {
        return std::make_unique<IntervalModel>(
            IntervalModel::Numbers{.amount = limit.amount,
                                   .period = period,
                                   .burst = limit.burst.value_or(limit.amount),
                                   .count_rejected = limit.count_rejected});
      }
      [[fallthrough]];
    case Algorithm::gcra:
    case Algorithm::leaky_bucket: {
      const std::uint64_t burst = limit.algorithm == Algorithm::leaky_bucket ? 1 : limit.amount;
      return std::make_unique<BucketModel>(
          BucketModel::Numbers{.interval = Rational{period} / limit.amount,
                               .burst = limit.burst.value_or(burst),
                               .max_delay = limit.max_delay.value_or(Nanos{0}).count(),
                               .count_rejected = limit.count_rejected});
    }
    case Algorithm::fixed_window:
      if (limit.align == Align::first_request) return std::make_unique<FirstRequestModel>(numbers);
      return std::make_unique<WindowModel>(
          WindowModel::Numbers{.amount = limit.amount,
                               .window = calendar ? calendar : WindowModel::epoch(period),
                               .count_rejected = limit.count_rejected});
    case Algorithm::sliding_log: return std::make_unique<LogModel>(numbers);
    case Algorithm::sliding_counter: return std::make_unique<CounterModel>(numbers);
    case Algorithm::sliding_buckets:
      return std::make_unique<SlicesModel>(SlicesModel::Numbers{
          .amount = limit.amount,
          .period = period,
          .width = limit.bucket_width.value_or(Nanos{(period + 7) / 8}).count(),
          .count_rejected = limit.count_rejected});
    case Algorithm::concurrency: break;
  }
  return std::make_unique<LeaseModel>(
      LeaseModel::Numbers{.amount = limit.amount,
                          .slot_ttl = limit.slot_ttl.value_or(std::chrono::seconds{60}).count()});
}

}  // namespace sluice::testing
