#include "base/duration.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/int128.h>

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace sluice::core {
namespace {

using Problem = std::optional<Diagnostic>;

bool refills_by_interval(const Limit& limit) noexcept {
  return limit.refill.value_or(Refill::continuous) == Refill::interval;
}

bool is_calendar(const Limit& limit) noexcept {
  return limit.align.value_or(Align::epoch) == Align::calendar;
}

Problem unused_option(const Limit& limit, std::string_view option, std::string_view user) {
  return Diagnostic{fmt::format("{} has no use for '{}'", to_string(limit.algorithm), option),
                    fmt::format("leave it out, or choose {}", user)};
}

Problem check_options(const Limit& limit) {
  const Algorithm algorithm = limit.algorithm;
  if (limit.burst && !is_bucket(algorithm)) {
    return unused_option(limit, "burst", "token_bucket, leaky_bucket or gcra");
  }
  if (limit.refill && algorithm != Algorithm::token_bucket) {
    return unused_option(limit, "refill", "token_bucket");
  }
  if (limit.align && algorithm != Algorithm::fixed_window) {
    return unused_option(limit, "align", "fixed_window");
  }
  if (limit.unit && algorithm != Algorithm::fixed_window) {
    return Diagnostic{fmt::format("{} cannot count per calendar {}", to_string(algorithm),
                                  to_string(*limit.unit)),
                      "choose fixed_window, or give the period as a length of time, as in 30d"};
  }
  if (limit.timezone && !is_calendar(limit)) {
    return Diagnostic{"'timezone' only matters to calendar windows",
                      "leave it out, or choose fixed_window with a period of day, week, month or "
                      "year"};
  }
  if (limit.bucket_width && algorithm != Algorithm::sliding_buckets) {
    return unused_option(limit, "bucket_width", "sliding_buckets");
  }
  if (limit.max_delay && algorithm != Algorithm::leaky_bucket) {
    return unused_option(limit, "max_delay", "leaky_bucket");
  }
  if (limit.slot_ttl && algorithm != Algorithm::concurrency) {
    return unused_option(limit, "slot_ttl", "concurrency");
  }
  if (limit.count_rejected && algorithm == Algorithm::concurrency) {
    return unused_option(limit, "count_rejected", "another algorithm");
  }
  return std::nullopt;
}

Problem check_amount(const Limit& limit) {
  if (limit.amount < 1) {
    return Diagnostic{"an amount of 0 would reject everything", "use at least 1"};
  }
  if (limit.amount > kAmountMax) {
    return Diagnostic{fmt::format("the amount {} is too large", limit.amount),
                      fmt::format("use at most {}", kAmountMax)};
  }
  return std::nullopt;
}

Problem check_calendar(const Limit& limit) {
  if (is_calendar(limit) && !limit.unit) {
    return Diagnostic{"calendar windows have no length of their own",
                      "give day, week, month or year as the period, as in 1000/month"};
  }
  if (is_calendar(limit) && limit.period != Nanos{0}) {
    return Diagnostic{fmt::format("a calendar {} has no use for a period of {}",
                                  to_string(*limit.unit), format_duration(limit.period)),
                      "leave one of them out"};
  }
  if (!is_calendar(limit) && limit.unit) {
    return Diagnostic{
        fmt::format("'{}' is a calendar period, but the windows are aligned to {}",
                    to_string(*limit.unit), to_string(limit.align.value_or(Align::epoch))),
        "use align calendar, or give the period as a length of time, as in 30d"};
  }
  return std::nullopt;
}

Problem check_period(const Limit& limit) {
  if (limit.period < kPeriodMin) {
    return Diagnostic{fmt::format("the period {} is too short", format_duration(limit.period)),
                      fmt::format("use at least {}", format_duration(kPeriodMin))};
  }
  if (limit.period > kPeriodMax) {
    return Diagnostic{fmt::format("the period {} is too long", format_duration(limit.period)),
                      fmt::format("use at most {}", format_duration(kPeriodMax))};
  }
  if (limit.amount > static_cast<std::uint64_t>(limit.period.count())) {
    return Diagnostic{
        fmt::format("{} per {} is more than 1000000000 per second", limit.amount,
                    format_duration(limit.period)),
        fmt::format("use at most {} per {}", limit.period.count(), format_duration(limit.period))};
  }
  return std::nullopt;
}

// A full bucket must drain (an empty one refill) within two years, or its level outgrows its word.
Problem check_burst(const Limit& limit) {
  const std::uint64_t burst = capacity(limit);
  if (burst < 1 || burst > kAmountMax) {
    return Diagnostic{fmt::format("a burst of {} is out of range", burst),
                      fmt::format("use 1 to {}", kAmountMax)};
  }
  const Int128 drain = Int128{static_cast<std::int64_t>(burst)} * limit.period.count() /
                       static_cast<std::int64_t>(limit.amount);
  if (drain > kDrainMax.count()) {
    const Int128 most =
        Int128{kDrainMax.count()} * static_cast<std::int64_t>(limit.amount) / limit.period.count();
    return Diagnostic{
        fmt::format("a burst of {} at {} per {} would take more than two years to refill", burst,
                    limit.amount, format_duration(limit.period)),
        fmt::format("use a burst of at most {}, or fixed_window", static_cast<std::int64_t>(most))};
  }
  return std::nullopt;
}

Problem check_max_delay(const Limit& limit) {
  const Nanos max_delay = limit.max_delay.value_or(Nanos{0});
  if (max_delay < Nanos{0} || max_delay > kDelayMax) {
    return Diagnostic{fmt::format("a max_delay of {} is out of range", format_duration(max_delay)),
                      fmt::format("use at most {}", format_duration(kDelayMax))};
  }
  return std::nullopt;
}

Problem check_log(const Limit& limit) {
  if (limit.amount <= kLogAmountMax) return std::nullopt;
  return Diagnostic{
      fmt::format("sliding_log remembers every request, {} are too many", limit.amount),
      fmt::format(
          "use at most {}, or sliding_buckets, which makes the same promise in fixed memory",
          kLogAmountMax)};
}

Nanos slice_width(const Limit& limit) noexcept {
  return limit.bucket_width.value_or(Nanos{ceil_div(limit.period.count(), kSlicesDefault)});
}

Problem check_granularity(const Limit& limit) {
  const Nanos width = slice_width(limit);
  if (width <= Nanos{0} || width > limit.period) {
    return Diagnostic{fmt::format("a bucket_width of {} does not fit into a period of {}",
                                  format_duration(width), format_duration(limit.period)),
                      "use more than 0 and at most the period"};
  }
  if (ceil_div(limit.period.count(), width.count()) > kSlicesMax) {
    const Nanos finest{ceil_div(limit.period.count(), kSlicesMax)};
    return Diagnostic{
        fmt::format("a bucket_width of {} cuts a period of {} into more than {} slices",
                    format_duration(width), format_duration(limit.period), kSlicesMax),
        fmt::format("use at least {}", format_duration(finest))};
  }
  return std::nullopt;
}

Problem check_slot_ttl(const Limit& limit) {
  const Nanos slot_ttl = limit.slot_ttl.value_or(kSlotTtlDefault);
  if (limit.period != Nanos{0}) {
    return Diagnostic{"concurrency counts requests in flight and has no period",
                      "give the amount alone, as in 20"};
  }
  if (slot_ttl < kPeriodMin || slot_ttl > kPeriodMax) {
    return Diagnostic{
        fmt::format("a slot_ttl of {} is out of range", format_duration(slot_ttl)),
        fmt::format("use {} to {}", format_duration(kPeriodMin), format_duration(kPeriodMax))};
  }
  return std::nullopt;
}

Problem check(const Limit& limit) {
  if (Problem problem = check_options(limit)) return problem;
  if (Problem problem = check_amount(limit)) return problem;
  if (limit.algorithm == Algorithm::concurrency) return check_slot_ttl(limit);
  if (Problem problem = check_calendar(limit)) return problem;
  if (is_calendar(limit)) return std::nullopt;
  if (Problem problem = check_period(limit)) return problem;
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
    case Algorithm::gcra:
      if (Problem problem = check_burst(limit)) return problem;
      return check_max_delay(limit);
    case Algorithm::sliding_log: return check_log(limit);
    case Algorithm::sliding_buckets: return check_granularity(limit);
    case Algorithm::fixed_window:
    case Algorithm::sliding_counter:
    case Algorithm::concurrency: break;
  }
  return std::nullopt;
}

Parsed<CompiledLimit> compile_window(const Limit& limit) {
  const auto amount = static_cast<Cost>(limit.amount);
  switch (limit.align.value_or(Align::epoch)) {
    case Align::epoch:
      return WindowLimit{.amount = amount,
                         .period = limit.period,
                         .calendar = nullptr,
                         .count_rejected = limit.count_rejected};
    case Align::first_request:
      return FirstRequestLimit{
          .amount = amount, .period = limit.period, .count_rejected = limit.count_rejected};
    case Align::calendar: break;
  }
  const std::string zone = limit.timezone.value_or("UTC");
  Result<CalendarGrid> grid = CalendarGrid::build(*limit.unit, zone);
  if (!grid && grid.error().code == Errc::not_found) {
    return mistake(fmt::format("unknown time zone '{}'", zone),
                   "use a name of the tz database, as in Europe/Berlin");
  }
  if (!grid) {
    return mistake(fmt::format("the time zone '{}' cannot be read", zone),
                   "install the tzdata package");
  }
  return WindowLimit{.amount = amount,
                     .period = Nanos{0},
                     .calendar = std::make_shared<const CalendarGrid>(*std::move(grid)),
                     .count_rejected = limit.count_rejected};
}

}  // namespace

std::uint64_t capacity(const Limit& limit) noexcept {
  if (limit.algorithm == Algorithm::leaky_bucket) return limit.burst.value_or(1);
  return limit.burst.value_or(limit.amount);
}

std::uint64_t most_admitted(const Limit& limit) noexcept {
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      if (refills_by_interval(limit)) {
        return capacity(limit) + std::min(capacity(limit), limit.amount);
      }
      [[fallthrough]];
    case Algorithm::leaky_bucket:
    case Algorithm::gcra: return capacity(limit) + limit.amount - 1;
    case Algorithm::fixed_window:
      return limit.align == Align::first_request ? 2 * limit.amount - 1 : 2 * limit.amount;
    case Algorithm::sliding_counter: return 2 * limit.amount - 1;
    case Algorithm::sliding_log:
    case Algorithm::sliding_buckets:
    case Algorithm::concurrency: return limit.amount;
  }
  return limit.amount;
}

Parsed<CompiledLimit> compile(const Limit& limit) {
  if (Problem problem = check(limit)) return tl::unexpected(*std::move(problem));

  const auto amount = static_cast<Cost>(limit.amount);
  const auto burst = static_cast<Cost>(capacity(limit));
  const bool count_rejected = limit.count_rejected;
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      if (refills_by_interval(limit)) {
        return IntervalLimit::from({.amount = amount,
                                    .period = limit.period,
                                    .burst = burst,
                                    .count_rejected = count_rejected});
      }
      [[fallthrough]];
    case Algorithm::leaky_bucket:
    case Algorithm::gcra:
      return GcraLimit::from({.amount = amount,
                              .period = limit.period,
                              .burst = burst,
                              .max_delay = limit.max_delay.value_or(Nanos{0}),
                              .count_rejected = count_rejected});
    case Algorithm::fixed_window: return compile_window(limit);
    case Algorithm::sliding_log:
      return LogLimit{.amount = amount, .period = limit.period, .count_rejected = count_rejected};
    case Algorithm::sliding_counter:
      return CounterLimit{
          .amount = amount, .period = limit.period, .count_rejected = count_rejected};
    case Algorithm::sliding_buckets:
      return BucketsLimit{.amount = amount,
                          .period = limit.period,
                          .width = slice_width(limit),
                          .slices = ceil_div(limit.period.count(), slice_width(limit).count()),
                          .count_rejected = count_rejected};
    case Algorithm::concurrency: break;
  }
  return ConcurrencyLimit{.amount = amount, .slot_ttl = limit.slot_ttl.value_or(kSlotTtlDefault)};
}

std::optional<Receipt> joined(const CompiledLimit& limit, Receipt earlier, Receipt later) noexcept {
  if (earlier.cost == 0) return later;
  if (later.cost == 0) return earlier;
  if (earlier.edition != later.edition) return std::nullopt;
  const Meter* meter = nullptr;
  if (const auto* gcra = std::get_if<GcraLimit>(&limit)) meter = &gcra->meter;
  if (const auto* interval = std::get_if<IntervalLimit>(&limit)) meter = &interval->meter;
  // A meter's charge begins where the one before it ends. Elsewhere a mark is the place of a
  // charge.
  const std::int64_t begins =
      meter != nullptr ? later.mark - std::int64_t{later.cost} * meter->unit : later.mark;
  const bool is_lease = std::holds_alternative<ConcurrencyLimit>(limit);
  if (begins != earlier.mark || is_lease) return std::nullopt;
  return Receipt{.mark = later.mark, .cost = earlier.cost + later.cost, .edition = later.edition};
}

}  // namespace sluice::core
