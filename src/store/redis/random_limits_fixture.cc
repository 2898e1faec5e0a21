#include "store/redis/random_limits_fixture.h"

#include <sluice/int128.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

namespace sluice::store {
namespace {

using core::Cost;

std::int64_t random_period(Chance& chance) {
  constexpr std::array kUsual{1'000L, 7'000L, kSecond, 60 * kSecond, 3'600 * kSecond, kDay};
  if (chance.one_in(3)) return chance.magnitude(1'000, 366 * kDay);
  return chance.pick(kUsual);
}

std::uint64_t random_amount(Chance& chance, std::int64_t most) {
  const std::int64_t reach = chance.one_in(4) ? most : std::min<std::int64_t>(most, 20);
  return static_cast<std::uint64_t>(chance.magnitude(1, reach));
}

Limit random_bucket(Chance& chance, std::int64_t period, std::int64_t fastest) {
  constexpr std::array kBuckets{Algorithm::token_bucket, Algorithm::gcra, Algorithm::leaky_bucket};
  Limit limit{.algorithm = chance.pick(kBuckets)};
  limit.period = micros(period);
  limit.amount = random_amount(chance, fastest);
  const auto most = static_cast<std::int64_t>(
      std::min<Int128>(Int128{2 * 365 * kDay} * limit.amount / period, 1'000'000'000));
  limit.burst = random_amount(chance, std::max<std::int64_t>(most, 1));
  if (limit.algorithm == Algorithm::leaky_bucket && chance.one_in(2)) {
    limit.max_delay = micros(chance.magnitude(0, std::min(4 * period, kDay)));
  }
  return limit;
}

// Another limit for the same field: an edit, a tier, an override.
Limit varied(Chance& chance, const Limit& of, LimitKind kind) {
  Limit limit = of;
  const std::int64_t most = kind == LimitKind::log ? core::kLogAmountMax
                            : of.period > Nanos{0}
                                ? std::min<std::int64_t>(1'000'000'000, of.period.count())
                                : 1'000'000'000;
  limit.amount = static_cast<std::uint64_t>(std::clamp<std::int64_t>(
      chance.one_in(2) ? static_cast<std::int64_t>(of.amount) * chance.between(1, 4) / 2
                       : chance.magnitude(1, std::min<std::int64_t>(most, 40)),
      1, most));
  if (of.burst) limit.burst = static_cast<std::uint64_t>(chance.magnitude(1, 40));
  if (kind == LimitKind::slots && chance.one_in(2)) limit.slot_ttl = micros(random_period(chance));
  limit.stands_in = chance.one_in(4);
  if (kind != LimitKind::slots && chance.one_in(4)) limit.count_rejected = !of.count_rejected;
  return limit;
}

SharedLimitPtr shared(const Limit& limit) {
  Parsed<SharedLimit> compiled = compile_shared(limit);
  return compiled ? std::make_shared<const SharedLimit>(*std::move(compiled)) : nullptr;
}

// Which windows a calendar has, the functions know only from the edges that a call brings along, so
// that a clock that was set back may be noticed a little earlier or later when a field changes from
// one calendar to something else. Days of UTC have one length.
bool changes_freely(const Limit& limit) {
  return !limit.unit || (*limit.unit == CalendarUnit::day && *limit.timezone == "UTC");
}

std::int64_t period_of(const Limit& limit) {
  if (limit.unit) return kDay;
  const Nanos period = limit.slot_ttl.value_or(limit.period);
  return period.count() / 1'000;
}

Limit random_limit(Chance& chance, LimitKind kind) {
  const std::int64_t period = random_period(chance);
  const std::int64_t fastest = std::min<std::int64_t>(1'000'000'000, period * 1'000);
  Limit limit{.algorithm = Algorithm::fixed_window};
  limit.period = micros(period);
  limit.amount = random_amount(chance, fastest);
  switch (kind) {
    case LimitKind::bucket: limit = random_bucket(chance, period, fastest); break;
    case LimitKind::interval: {
      const Limit bucket = random_bucket(chance, period, fastest);
      limit.algorithm = Algorithm::token_bucket;
      limit.refill = Refill::interval;
      limit.amount = bucket.amount;
      limit.burst = bucket.burst;
      break;
    }
    case LimitKind::window: break;
    case LimitKind::calendar: {
      constexpr std::array kUnits{CalendarUnit::day, CalendarUnit::week, CalendarUnit::month,
                                  CalendarUnit::year};
      const std::array<std::string, 3> zones{"UTC", "America/New_York", "Europe/Berlin"};
      limit.align = Align::calendar;
      limit.period = Nanos{0};
      limit.unit = chance.pick(kUnits);
      limit.timezone = chance.pick(zones);
      limit.amount = random_amount(chance, 1'000'000'000);
      break;
    }
    case LimitKind::first: limit.align = Align::first_request; break;
    case LimitKind::counter: limit.algorithm = Algorithm::sliding_counter; break;
    case LimitKind::log:
      limit.algorithm = Algorithm::sliding_log;
      limit.amount = random_amount(chance, std::min<std::int64_t>(fastest, core::kLogAmountMax));
      break;
    case LimitKind::slices: {
      limit.algorithm = Algorithm::sliding_buckets;
      const std::int64_t most = chance.one_in(20) ? 4'000 : 200;
      const std::int64_t count = chance.magnitude(1, std::min(most, period));
      if (count != 8) limit.bucket_width = micros(ceil_div(period, count));
      break;
    }
    case LimitKind::slots:
      limit.algorithm = Algorithm::concurrency;
      limit.slot_ttl = limit.period;
      limit.period = Nanos{0};
      limit.amount = random_amount(chance, 1'000);
      return limit;
  }
  limit.count_rejected = chance.one_in(5);
  return limit;
}

}  // namespace

std::vector<SharedLimitPtr> random_limits(Chance& chance, LimitKind kind) {
  std::vector<SharedLimitPtr> limits;
  while (limits.empty()) {
    if (SharedLimitPtr limit = shared(random_limit(chance, kind))) limits.push_back(limit);
  }
  const Limit base = limits[0]->limit;
  for (std::int64_t more = chance.one_in(2) ? chance.between(1, 3) : 0; more > 0; --more) {
    Limit limit = varied(chance, base, kind);
    if (chance.one_in(4) && changes_freely(base)) {
      limit = random_limit(chance, chance.one_in(2) ? kind : chance.pick(kLimitKinds));
      if (!changes_freely(limit)) continue;
    }
    if (SharedLimitPtr variant = shared(limit)) limits.push_back(variant);
  }
  return limits;
}

std::int64_t random_gap(Chance& chance, const Limit& limit, std::int64_t now) {
  const std::int64_t period = period_of(limit);
  const std::int64_t interval =
      std::max<std::int64_t>(1, period / static_cast<std::int64_t>(limit.amount));
  const std::int64_t width = limit.bucket_width.value_or(micros(interval)).count() / 1'000;
  const std::int64_t beside = chance.between(-1, 1);
  switch (chance.between(0, 19)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: return 0;
    case 5: return 1;
    case 6:
    case 7: return std::max<std::int64_t>(0, interval * chance.magnitude(1, 20) + beside);
    case 8: return width * chance.magnitude(1, 20) + std::abs(beside);
    case 9:
    case 10: return std::max<std::int64_t>(0, period - now % period + beside);  // the next edge
    case 11: return std::max<std::int64_t>(0, period * chance.magnitude(1, 4) + beside);
    case 12:
    case 13:
    case 14: return chance.between(0, period);
    case 15: return chance.magnitude(0, period);
    case 16: return chance.one_in(4) ? chance.magnitude(0, 3 * 365 * kDay) : 0;
    case 17: return -chance.magnitude(0, 60 * kSecond);
    case 18: return chance.one_in(4) ? -(60 * kSecond + beside) : 0;
    default: return chance.one_in(4) ? -chance.magnitude(61 * kSecond, 400 * kDay) : 0;
  }
}

Cost random_cost(Chance& chance, Cost capacity) {
  switch (chance.between(0, 9)) {
    case 0: return 0;
    case 1: return capacity;
    case 2: return capacity < UINT32_MAX ? capacity + 1 : capacity;
    case 3:
    case 4: return static_cast<Cost>(chance.magnitude(1, capacity));
    case 5: return static_cast<Cost>(chance.between(1, capacity));
    default: return 1;
  }
}

}  // namespace sluice::store
