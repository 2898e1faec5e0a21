#include "store/redis/shared_limit.h"

#include "base/duration.h"
#include <sluice/int128.h>

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <variant>

namespace sluice::store {
namespace {

using core::Cost;

constexpr std::int64_t kExact = std::int64_t{1} << 53U;
constexpr std::int64_t kMicro = 1'000;
constexpr Nanos kLeasedWindowMin = std::chrono::milliseconds{800};

std::int64_t micros(Nanos time) noexcept { return time.count() / kMicro; }

Nanos rounded_up(Nanos time) noexcept { return Nanos{ceil_div(time.count(), kMicro) * kMicro}; }

std::optional<Diagnostic> not_whole(std::string_view what, Nanos time) {
  if (time.count() % kMicro == 0) return std::nullopt;
  return Diagnostic{fmt::format("a shared limit counts whole microseconds, a {} of {} is none",
                                what, format_duration(time)),
                    fmt::format("use {}, or mode local", format_duration(rounded_up(time)))};
}

std::optional<Diagnostic> check_whole(const Limit& limit) {
  if (auto problem = not_whole("period", limit.period)) return problem;
  if (auto problem = not_whole("bucket_width", limit.bucket_width.value_or(Nanos{0}))) {
    return problem;
  }
  if (auto problem = not_whole("max_delay", limit.max_delay.value_or(Nanos{0}))) return problem;
  return not_whole("slot_ttl", limit.slot_ttl.value_or(Nanos{0}));
}

// The default width need not be whole. The operator did not choose it, so it is rounded.
Limit with_whole_width(Limit limit) {
  if (limit.algorithm == Algorithm::sliding_buckets && !limit.bucket_width) {
    limit.bucket_width = rounded_up(Nanos{ceil_div(limit.period.count(), core::kSlicesDefault)});
  }
  return limit;
}

std::uint8_t shared_fraction_bits(std::int64_t period, std::int64_t amount) noexcept {
  std::uint8_t bits = 0;
  while ((Int128{period} << bits) % amount != 0 && (Int128{period} << bits) / amount < 256) ++bits;
  return bits;
}

// As GcraLimit::from, in microseconds.
core::GcraLimit bucket_in_micros(const Limit& limit) noexcept {
  const auto amount = static_cast<std::int64_t>(limit.amount);
  const std::int64_t period = micros(limit.period);
  const std::uint8_t bits = shared_fraction_bits(period, amount);
  const std::int64_t radix = std::int64_t{1} << bits;
  const std::int64_t unit = mul_div_ceil(period, radix, amount);
  const auto burst = static_cast<Cost>(core::capacity(limit));
  const std::int64_t room = unit * std::int64_t{burst};
  const std::int64_t full = room + micros(limit.max_delay.value_or(Nanos{0})) * radix;
  return {.meter = {.unit = unit,
                    .capacity = room,
                    .full = full,
                    .possible = full + micros(core::kClockStep) * radix,
                    .burst = burst,
                    .count_rejected = limit.count_rejected,
                    .inverse = core::inverse_of(unit)},
          .fraction_bits = bits};
}

// The largest number a function forms for a bucket is a level plus a cost, or `possible` and two
// steps of the clock; twice `possible` is above both. Only a queue can be that long.
//
// The other kinds need no check. Instants in microseconds, plus a limit's spans, are below 2^53
// until the year 2255; counts are a few 1e9 at most; an interval bucket's tokens of a minute and a
// burst are below 2^37. Their products are divided digit by digit (functions/numbers.lua), by
// divisors below 2^46: periods of at most 366 days, capacities that drain within two years.
std::optional<Diagnostic> check_bucket(const Limit& limit, const core::GcraLimit& bucket) {
  if (bucket.meter.possible < kExact / 2) return std::nullopt;
  const std::int64_t radix = std::int64_t{1} << bucket.fraction_bits;
  const std::int64_t delay =
      (kExact / 2 - 1 - bucket.meter.capacity) / radix - micros(core::kClockStep);
  return Diagnostic{
      fmt::format("a max_delay of {} at {} per {} is too long for a shared limit",
                  format_duration(*limit.max_delay), limit.amount, format_duration(limit.period)),
      fmt::format("use at most {}, or mode local", format_duration(Nanos{delay * kMicro}))};
}

std::string flags_of(const Limit& limit) {
  std::string flags;
  if (limit.count_rejected) flags += 'r';
  if (limit.stands_in) flags += 's';
  return flags.empty() ? "-" : flags;
}

std::string text_of_window(const Limit& limit, const core::WindowLimit& window) {
  if (!window.calendar) {
    return fmt::format("window,{},{},{}", flags_of(limit), window.amount, micros(window.period));
  }
  return fmt::format("calendar,{},{},{}@{}", flags_of(limit), window.amount, to_string(*limit.unit),
                     limit.timezone.value_or("UTC"));
}

struct TextOf {
  const Limit& limit;
  std::string flags = flags_of(limit);

  std::string operator()(const core::GcraLimit& bucket) const {
    return fmt::format("bucket,{},{},{},{},{}", flags, bucket.fraction_bits, bucket.meter.unit,
                       bucket.meter.burst, micros(limit.max_delay.value_or(Nanos{0})));
  }
  std::string operator()(const core::IntervalLimit& interval) const {
    return fmt::format("interval,{},{},{},{}", flags, interval.amount, micros(interval.period),
                       interval.meter.burst);
  }
  std::string operator()(const core::WindowLimit& window) const {
    return text_of_window(limit, window);
  }
  std::string operator()(const core::FirstRequestLimit& window) const {
    return fmt::format("first,{},{},{}", flags, window.amount, micros(window.period));
  }
  std::string operator()(const core::LogLimit& log) const {
    return fmt::format("log,{},{},{}", flags, log.amount, micros(log.period));
  }
  std::string operator()(const core::CounterLimit& counter) const {
    return fmt::format("counter,{},{},{}", flags, counter.amount, micros(counter.period));
  }
  std::string operator()(const core::BucketsLimit& buckets) const {
    return fmt::format("slices,{},{},{},{},{}", flags, buckets.amount, micros(buckets.period),
                       micros(buckets.width), buckets.slices);
  }
  std::string operator()(const core::ConcurrencyLimit& slots) const {
    return fmt::format("slots,{},{},{}", flags, slots.amount, micros(slots.slot_ttl));
  }
};

bool may_be_leased(const Limit& limit, const core::CompiledLimit& steps) noexcept {
  if (limit.count_rejected || limit.max_delay.value_or(Nanos{0}) > Nanos{0}) return false;
  if (std::holds_alternative<core::GcraLimit>(steps)) return true;
  const bool is_window = std::holds_alternative<core::WindowLimit>(steps) ||
                         std::holds_alternative<core::FirstRequestLimit>(steps);
  return is_window && (limit.unit || limit.period >= kLeasedWindowMin);
}

}  // namespace

const core::CalendarGrid* SharedLimit::calendar() const noexcept {
  const auto* window = std::get_if<core::WindowLimit>(&steps);
  return window != nullptr ? window->calendar.get() : nullptr;
}

Parsed<SharedLimit> compile_shared(const Limit& limit) {
  const Limit whole = with_whole_width(limit);
  Parsed<core::CompiledLimit> compiled = core::compile(whole);
  if (!compiled) return tl::unexpected(std::move(compiled.error()));
  if (auto problem = check_whole(whole)) return tl::unexpected(*std::move(problem));

  SharedLimit shared{.limit = whole, .steps = *std::move(compiled), .text = {}};
  shared.capacity = static_cast<Cost>(core::capacity(whole));
  if (std::holds_alternative<core::GcraLimit>(shared.steps)) {
    const core::GcraLimit bucket = bucket_in_micros(whole);
    if (auto problem = check_bucket(whole, bucket)) return tl::unexpected(*std::move(problem));
    shared.steps = bucket;
    shared.counts_micros = true;
  }
  shared.text = std::visit(TextOf{.limit = whole}, shared.steps);
  shared.is_leasable = may_be_leased(whole, shared.steps);
  return shared;
}

}  // namespace sluice::store
