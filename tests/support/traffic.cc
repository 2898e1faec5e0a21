#include "support/traffic.h"

#include "base/duration.h"
#include <sluice/core/limit_text.h>
#include <sluice/int128.h>

#include <algorithm>
#include <bit>
#include <ostream>
#include <stdexcept>

namespace sluice {

void showValue(const Decision& decision, std::ostream& out) {
  constexpr const char* kVerdicts[] = {"allowed", "rejected", "never"};
  out << kVerdicts[static_cast<int>(decision.verdict)] << " limit=" << decision.limit
      << " remaining=" << decision.remaining << " reset=" << decision.reset_after.count()
      << "ns retry=";
  if (decision.retry_after) {
    out << decision.retry_after->count() << "ns";
  } else {
    out << "none";
  }
  out << " delay=" << decision.delay.count() << "ns";
}

void PrintTo(const Decision& decision, std::ostream* out) { showValue(decision, *out); }

void showValue(const Limit& limit, std::ostream& out) {
  out << to_string(limit.algorithm) << ' ' << core::rate_text(limit);
  if (limit.burst) out << " burst=" << *limit.burst;
  if (limit.refill) out << " refill=" << to_string(*limit.refill);
  if (limit.align) out << " align=" << to_string(*limit.align);
  if (limit.timezone) out << " timezone=" << *limit.timezone;
  if (limit.bucket_width) out << " bucket_width=" << format_duration(*limit.bucket_width);
  if (limit.max_delay) out << " max_delay=" << format_duration(*limit.max_delay);
  if (limit.slot_ttl) out << " slot_ttl=" << format_duration(*limit.slot_ttl);
  if (limit.count_rejected) out << " count_rejected";
}

}  // namespace sluice

namespace sluice::testing {

using namespace std::chrono_literals;

void showValue(const Beat& beat, std::ostream& out) {
  out << "{+" << beat.gap << "ns, cost " << beat.cost << '}';
}

void PrintTo(const Subject& subject, std::ostream* out) { showValue(subject.limit, *out); }

Scale scale_of(const Limit& limit) {
  std::int64_t period = limit.period.count();
  if (limit.unit) period = std::int64_t{86'400} * 1'000'000'000;
  if (limit.algorithm == Algorithm::concurrency) period = limit.slot_ttl.value_or(60s).count();
  std::int64_t interval =
      ceil_div(period, static_cast<std::int64_t>(std::max<std::uint64_t>(limit.amount, 1)));
  if (limit.algorithm == Algorithm::sliding_buckets) {
    interval = limit.bucket_width.value_or(Nanos{ceil_div(period, std::int64_t{8})}).count();
  }
  return {.interval = interval, .period = period, .capacity = core::capacity(limit)};
}

rc::Gen<std::uint64_t> between(std::uint64_t least, std::uint64_t most) {
  if (least >= most) return rc::gen::just(least);
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::uint64_t>(least, most + 1));
}

rc::Gen<std::uint64_t> magnitude(std::uint64_t least, std::uint64_t most) {
  const auto span = static_cast<std::uint64_t>(std::bit_width(most - least));
  return rc::gen::mapcat(between(0, span), [=](std::uint64_t bits) {
    const std::uint64_t reach =
        bits == 0 ? 0 : std::min(most - least, (std::uint64_t{1} << bits) - 1);
    return between(least, least + reach);
  });
}

rc::Gen<std::int64_t> gaps(const Scale& scale) {
  const std::int64_t longest = scale.longest_gap;
  const auto near_multiple = [longest](std::int64_t length) {
    return rc::gen::map(
        rc::gen::pair(magnitude(1, 64), rc::gen::element<std::int64_t>(-1, 0, 0, 1)),
        [=](const std::pair<std::uint64_t, std::int64_t>& pick) {
          const auto times =
              std::min(static_cast<std::int64_t>(pick.first), std::max(longest / length, {1}));
          return std::min(times * length + pick.second, longest);
        });
  };
  const auto up_to = [](std::int64_t most) {
    return rc::gen::cast<std::int64_t>(magnitude(0, static_cast<std::uint64_t>(most)));
  };
  return rc::gen::weightedOneOf<std::int64_t>({
      {4, rc::gen::just<std::int64_t>(0)},
      {2, rc::gen::just<std::int64_t>(1)},
      {5, near_multiple(scale.interval)},
      {4, near_multiple(scale.period)},
      {3, up_to(std::min(scale.period, longest))},
      {1, up_to(longest)},
  });
}

rc::Gen<Cost> costs(std::uint64_t capacity) {
  return rc::gen::weightedOneOf<Cost>({
      {1, rc::gen::just<Cost>(0)},
      {5, rc::gen::just<Cost>(1)},
      {4, rc::gen::cast<Cost>(magnitude(1, capacity))},
      {3, rc::gen::cast<Cost>(between(1, capacity))},
      {2, rc::gen::just(static_cast<Cost>(capacity))},
      {1, rc::gen::just(static_cast<Cost>(capacity + 1))},
      {1, rc::gen::cast<Cost>(between(1, 2 * capacity))},
  });
}

rc::Gen<std::vector<Beat>> traffic(const Scale& scale, std::size_t longest) {
  const auto beat = rc::gen::map(rc::gen::pair(gaps(scale), costs(scale.capacity)),
                                 [](const std::pair<std::int64_t, Cost>& pick) {
                                   return Beat{.gap = pick.first, .cost = pick.second};
                                 });
  return rc::gen::mapcat(between(1, longest), [beat](std::uint64_t size) {
    return rc::gen::container<std::vector<Beat>>(size, beat);
  });
}

rc::Gen<std::int64_t> starts(std::int64_t period) {
  const auto any = rc::gen::cast<std::int64_t>(rc::gen::oneOf(
      between(0, 62 * std::uint64_t{kYear}), between(0, static_cast<std::uint64_t>(kLastInstant)),
      rc::gen::map(magnitude(0, 40 * std::uint64_t{kYear}), [](std::uint64_t before) {
        return static_cast<std::uint64_t>(kLastInstant) - before;
      })));
  return rc::gen::oneOf(
      any, rc::gen::map(any, [period](std::int64_t start) { return start / period * period; }),
      rc::gen::just<std::int64_t>(0));
}

namespace {

rc::Gen<std::uint64_t> periods() {
  const auto least = static_cast<std::uint64_t>(core::kPeriodMin.count());
  const auto most = static_cast<std::uint64_t>(core::kPeriodMax.count());
  constexpr std::uint64_t kSecond = 1'000'000'000;
  return rc::gen::oneOf(
      rc::gen::element(least, most, kSecond, 60 * kSecond, 3600 * kSecond, 86'400 * kSecond,
                       30 * 86'400 * kSecond, least + 1, kSecond - 1, kSecond + 1, most - 1),
      magnitude(least, most));
}

rc::Gen<std::uint64_t> amounts(std::uint64_t most) {
  return rc::gen::oneOf(between(1, std::min<std::uint64_t>(3, most)), magnitude(1, most),
                        rc::gen::just(most));
}

rc::Gen<Limit> rates(Algorithm algorithm, std::uint64_t amount_max = core::kAmountMax) {
  return rc::gen::mapcat(periods(), [=](std::uint64_t period) {
    return rc::gen::map(amounts(std::min(amount_max, period)), [=](std::uint64_t amount) {
      return Limit{.algorithm = algorithm,
                   .amount = amount,
                   .period = Nanos{static_cast<std::int64_t>(period)}};
    });
  });
}

// A burst that drains within two years.
rc::Gen<Limit> with_burst(rc::Gen<Limit> limits) {
  return rc::gen::mapcat(std::move(limits), [](const Limit& limit) {
    const Int128 most = Int128{core::kDrainMax.count()} * static_cast<std::int64_t>(limit.amount) /
                        limit.period.count();
    const auto cap = static_cast<std::uint64_t>(
        std::min(most, Int128{static_cast<std::int64_t>(core::kAmountMax)}));
    return rc::gen::map(amounts(cap), [limit](std::uint64_t burst) {
      Limit bursting = limit;
      bursting.burst = burst;
      return bursting;
    });
  });
}

rc::Gen<Limit> maybe_counting_denied(rc::Gen<Limit> limits) {
  return rc::gen::map(rc::gen::pair(std::move(limits), between(0, 4)),
                      [](std::pair<Limit, std::uint64_t> pick) {
                        pick.first.count_rejected = pick.second == 0;
                        return pick.first;
                      });
}

rc::Gen<Limit> with_queue(rc::Gen<Limit> limits) {
  const auto day = static_cast<std::uint64_t>(core::kDelayMax.count());
  return rc::gen::map(
      rc::gen::tuple(std::move(limits), between(0, 2), magnitude(0, day), between(0, 8)),
      [](const std::tuple<Limit, std::uint64_t, std::uint64_t, std::uint64_t>& pick) {
        auto [limit, how, nanos, times] = pick;
        if (how == 1) limit.max_delay = Nanos{static_cast<std::int64_t>(nanos)};
        if (how == 2) {
          limit.max_delay = std::min<Nanos>(core::kDelayMax,
                                            limit.period / static_cast<std::int64_t>(limit.amount) *
                                                static_cast<std::int64_t>(times));
        }
        return limit;
      });
}

Limit limit(Algorithm algorithm, std::uint64_t amount, Nanos period) {
  return {.algorithm = algorithm, .amount = amount, .period = period};
}

}  // namespace

rc::Gen<Limit> bucket_limits() {
  return maybe_counting_denied(rc::gen::oneOf(
      with_burst(rates(Algorithm::token_bucket)), with_burst(rates(Algorithm::gcra)),
      rates(Algorithm::leaky_bucket), with_queue(with_burst(rates(Algorithm::leaky_bucket)))));
}

rc::Gen<Limit> interval_limits() {
  return rc::gen::map(maybe_counting_denied(with_burst(rates(Algorithm::token_bucket))),
                      [](Limit limit) {
                        limit.refill = Refill::interval;
                        return limit;
                      });
}

rc::Gen<Limit> limits_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
    case Algorithm::gcra: return bucket_limits();
    case Algorithm::sliding_log:
      return maybe_counting_denied(rates(algorithm, core::kLogAmountMax));
    case Algorithm::sliding_buckets:
      return maybe_counting_denied(rc::gen::map(
          rc::gen::pair(rates(algorithm), magnitude(1, 200)),
          [](std::pair<Limit, std::uint64_t> pick) {
            auto& [limit, slices] = pick;
            if (slices != 8) {
              limit.bucket_width =
                  Nanos{ceil_div(limit.period.count(), static_cast<std::int64_t>(slices))};
            }
            return limit;
          }));
    case Algorithm::concurrency:
      return rc::gen::map(rates(algorithm), [](Limit limit) {
        limit.slot_ttl = limit.period;
        limit.period = Nanos{0};
        return limit;
      });
    case Algorithm::fixed_window:
    case Algorithm::sliding_counter: break;
  }
  return maybe_counting_denied(rates(algorithm));
}

core::CompiledLimit compiled(const Limit& limit) {
  Parsed<core::CompiledLimit> result = core::compile(limit);
  if (!result) throw std::invalid_argument(result.error().text());
  return *std::move(result);
}

Decision peek(const core::Cell& cell, const core::CompiledLimit& limit, std::int64_t now) {
  core::Cell copy = cell;
  return copy.decide(limit, at(now), 0).decision;
}

std::uint64_t Envelope::densest(std::int64_t period) const {
  std::vector<std::pair<std::int64_t, std::uint64_t>> sorted = admitted_;
  std::sort(sorted.begin(), sorted.end());
  std::uint64_t most = 0;
  std::uint64_t inside = 0;
  std::size_t oldest = 0;
  for (const auto& [at, cost] : sorted) {
    inside += cost;
    while (sorted[oldest].first <= at - period) inside -= sorted[oldest++].second;
    most = std::max(most, inside);
  }
  return most;
}

std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  const auto add = [&](std::string name, Limit limit) -> Limit& {
    return subjects.emplace_back(Subject{.name = std::move(name), .limit = std::move(limit)}).limit;
  };
  add("token_bucket", limit(Algorithm::token_bucket, 5, 1s));
  add("token_bucket_uneven", limit(Algorithm::token_bucket, 3, 1s)).burst = 7;
  add("token_bucket_sub_nanosecond_rounding", limit(Algorithm::token_bucket, 300'000'007, 1s))
      .burst = 4;
  add("token_bucket_fastest", limit(Algorithm::token_bucket, 1'000'000'000, 1s)).burst = 3;
  add("token_bucket_slowest", limit(Algorithm::token_bucket, 1, core::kPeriodMax));
  add("interval", limit(Algorithm::token_bucket, 5, 1s)).refill = Refill::interval;
  Limit& large = add("interval_large_burst", limit(Algorithm::token_bucket, 3, 1min));
  large.refill = Refill::interval;
  large.burst = 8;
  Limit& small = add("interval_small_burst", limit(Algorithm::token_bucket, 8, 1min));
  small.refill = Refill::interval;
  small.burst = 3;
  add("leaky_bucket", limit(Algorithm::leaky_bucket, 10, 1s));
  add("leaky_bucket_burst", limit(Algorithm::leaky_bucket, 7, 1s)).burst = 4;
  add("leaky_bucket_queue", limit(Algorithm::leaky_bucket, 10, 1s)).max_delay = 350ms;
  Limit& queue = add("leaky_bucket_burst_queue", limit(Algorithm::leaky_bucket, 7, 1min));
  queue.burst = 3;
  queue.max_delay = 20s;
  add("gcra", limit(Algorithm::gcra, 6, 1min));
  add("gcra_one", limit(Algorithm::gcra, 1, 1ms));
  add("fixed_window", limit(Algorithm::fixed_window, 5, 1s));
  add("fixed_window_one", limit(Algorithm::fixed_window, 1, 7h));
  Limit& day = add("fixed_window_day", limit(Algorithm::fixed_window, 4, 0s));
  day.align = Align::calendar;
  day.unit = CalendarUnit::day;
  day.timezone = "America/New_York";
  Limit& month = add("fixed_window_month", limit(Algorithm::fixed_window, 4, 0s));
  month.align = Align::calendar;
  month.unit = CalendarUnit::month;
  add("fixed_window_first_request", limit(Algorithm::fixed_window, 5, 1s)).align =
      Align::first_request;
  add("sliding_log", limit(Algorithm::sliding_log, 6, 1s));
  add("sliding_log_one", limit(Algorithm::sliding_log, 1, 10min));
  add("sliding_counter", limit(Algorithm::sliding_counter, 6, 1s));
  add("sliding_counter_one", limit(Algorithm::sliding_counter, 1, 3min));
  add("sliding_buckets", limit(Algorithm::sliding_buckets, 6, 8s));
  add("sliding_buckets_one_slice", limit(Algorithm::sliding_buckets, 3, 1s)).bucket_width = 1s;
  add("sliding_buckets_odd", limit(Algorithm::sliding_buckets, 5, 10min)).bucket_width = 3min;
  add("concurrency", limit(Algorithm::concurrency, 5, 0s));

  // Every variant once more, with refused requests consuming.
  for (std::size_t i = 0, plain = subjects.size(); i < plain; ++i) {
    Subject rejected = subjects[i];
    if (rejected.limit.algorithm == Algorithm::concurrency) continue;
    rejected.name += "_count_rejected";
    rejected.limit.count_rejected = true;
    subjects.push_back(std::move(rejected));
  }
  return subjects;
}

}  // namespace sluice::testing
