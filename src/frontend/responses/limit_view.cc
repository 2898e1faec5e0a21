#include "frontend/responses/limit_view.h"

#include <sluice/int128.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>

namespace sluice::frontend {
namespace {

using engine::Action;
using engine::LimitOutcome;
using engine::Op;
using engine::Reason;

constexpr Nanos kSecond = std::chrono::seconds{1};

Nanos calendar_period(CalendarUnit unit) noexcept {
  using std::chrono::hours;
  switch (unit) {
    case CalendarUnit::day: return hours{24};
    case CalendarUnit::week: return hours{24 * 7};
    case CalendarUnit::month: return hours{24 * 31};
    case CalendarUnit::year: return hours{24 * 366};
  }
  return hours{24};
}

Nanos period_of(const Limit& limit) noexcept {
  return limit.unit ? calendar_period(*limit.unit) : limit.period;
}

// Nearly all dividends fit 64 bits, whose division is several times faster than 128.
Uint128 ceil_div_wide(Uint128 dividend, std::uint64_t divisor) noexcept {
  if (dividend > std::numeric_limits<std::uint64_t>::max()) [[unlikely]] {
    return ceil_div(dividend, Uint128{divisor});
  }
  return ceil_div(static_cast<std::uint64_t>(dividend), divisor);
}

// A large burst with a slow refill takes centuries, more nanoseconds than 64 bits hold.
Uint128 time_to_refill(std::uint64_t capacity, std::uint64_t amount,
                       std::uint64_t period) noexcept {
  return ceil_div_wide(Uint128{capacity} * period, amount);
}

bool is_bucket(const Limit& limit) noexcept {
  const bool drains = limit.algorithm == Algorithm::token_bucket ||
                      limit.algorithm == Algorithm::leaky_bucket ||
                      limit.algorithm == Algorithm::gcra;
  return drains && limit.refill.value_or(Refill::continuous) == Refill::continuous;
}

// For how long no more than `remaining` should be used. For a rejected request, until it fits; else
// until all of it is back. A bucket that is just empty has a unit again much earlier.
Nanos available_in(const LimitOutcome& outcome) noexcept {
  const Decision& decision = outcome.decision;
  if (!decision.allowed() && decision.retry_after) return *decision.retry_after;
  const Limit& limit = outcome.limit->limit;
  if (decision.allowed() && decision.remaining == 0 && is_bucket(limit) && outcome.amount > 0) {
    const Nanos one_more{ceil_div(limit.period.count(), static_cast<std::int64_t>(outcome.amount))};
    return std::min(decision.reset_after, one_more);
  }
  return decision.reset_after;
}

// The rejection began a block, which lasts longer than any limit of the rule demands.
bool began_block(const Op& op) noexcept {
  if (op.rule == nullptr || !op.rule->block || !op.decision.retry_after) return false;
  return std::ranges::none_of(op.limits(), [&](const LimitOutcome& one) {
    return one.rule == op.rule && one.decision.retry_after >= op.decision.retry_after;
  });
}

// Beside Retry-After, a client must not see a longer wait, nor a shorter one if the rule blocks it
// until then.
Nanos in_step_with_retry(Nanos time, const Op& op, const LimitOutcome& outcome) noexcept {
  const bool is_used_up = op.action != Action::pass && outcome.decision.remaining == 0;
  if (!is_used_up || !op.decision.retry_after) return time;
  if (outcome.rule == op.rule && began_block(op)) return *op.decision.retry_after;
  return std::min(time, *op.decision.retry_after);
}

bool binds(const LimitView& a, const LimitView& b) noexcept {
  const bool a_allowed = a.verdict == Verdict::allowed;
  const bool b_allowed = b.verdict == Verdict::allowed;
  if (a_allowed != b_allowed) return b_allowed;
  if (a_allowed) {
    return std::tuple{a.remaining, -a.available_in.count()} <
           std::tuple{b.remaining, -b.available_in.count()};
  }
  const bool a_never = a.verdict == Verdict::never;
  const bool b_never = b.verdict == Verdict::never;
  if (a_never || b_never) return a_never && !b_never;
  return a.retry_after.value_or(Nanos{-1}) > b.retry_after.value_or(Nanos{-1});
}

}  // namespace

std::uint64_t seconds_rounded_up(Nanos time) noexcept {
  if (time <= Nanos{0}) return 0;
  return static_cast<std::uint64_t>(ceil_div(time.count(), kSecond.count()));
}

Policy policy_of(const Limit& limit, std::uint64_t amount, std::uint64_t capacity) noexcept {
  if (limit.algorithm == Algorithm::concurrency) return {.quota = capacity, .window_s = 0};
  const auto period = static_cast<std::uint64_t>(period_of(limit).count());
  // Units that are refilled at once at the end of a period and exceed the capacity are lost.
  if (limit.refill == Refill::interval) amount = std::min(amount, capacity);
  if (amount == 0 || period == 0) return {.quota = capacity, .window_s = 0};

  const auto second = static_cast<std::uint64_t>(kSecond.count());
  const std::uint64_t quota = std::max(amount, capacity);
  const Uint128 window =
      capacity <= amount ? Uint128{period} : time_to_refill(capacity, amount, period);
  if (window >= second) {
    const Uint128 window_s = ceil_div_wide(window, second);
    constexpr Uint128 kMost = std::numeric_limits<std::uint64_t>::max();
    return {.quota = quota, .window_s = static_cast<std::uint64_t>(std::min(window_s, kMost))};
  }
  return {.quota = static_cast<std::uint64_t>(Uint128{quota} * second / window), .window_s = 1};
}

void write_name(TextWriter& writer, const LimitView& view) noexcept {
  writer.put(view.rule);
  if (!view.limit.empty()) {
    writer.put('.');
    writer.put(view.limit);
  } else if (view.number > 0) {
    writer.put('.');
    writer.number(view.number);
  }
}

std::string_view name_of(const LimitView& view, std::span<char> room) noexcept {
  const bool is_alone = view.limit.empty() && view.number == 0;
  if (is_alone && view.rule.size() <= room.size()) return view.rule;
  TextWriter name{room};
  write_name(name, view);
  return name.text();
}

// ---- views ------------------------------------------------------------------------------------

LimitView LimitViews::look_at(std::size_t place) const noexcept {
  const LimitOutcome& outcome = op_.limits()[place];
  // Limits of one rule are adjacent.
  std::size_t first = place;
  while (first > 0 && op_.limits()[first - 1].rule == outcome.rule) --first;
  std::size_t end = place + 1;
  while (end < op_.limits().size() && op_.limits()[end].rule == outcome.rule) ++end;

  const Decision& decision = outcome.decision;
  return {
      .rule = outcome.rule->name,
      .limit = outcome.limit->name,
      .number = end - first > 1 ? static_cast<unsigned>(place - first + 1) : 0,
      .policy = policy_of(outcome.limit->limit, outcome.amount, decision.limit),
      .capacity = decision.limit,
      .remaining = decision.remaining,
      .available_in = in_step_with_retry(available_in(outcome), op_, outcome),
      .verdict = decision.verdict,
      .retry_after = decision.retry_after,
  };
}

LimitView LimitViews::of_block() const noexcept {
  return {.rule = op_.rule != nullptr ? std::string_view{op_.rule->name} : "",
          .has_policy = false,
          .available_in = op_.decision.reset_after,
          .verdict = op_.decision.verdict,
          .retry_after = op_.decision.retry_after};
}

std::optional<LimitView> LimitViews::tightest() noexcept {
  std::optional<LimitView> best;
  for_each([&](const LimitView& view) {
    if (!best || binds(view, *best)) best = view;
  });
  return best;
}

std::optional<std::uint64_t> retry_after_s(const Op& op) noexcept {
  if (op.action == Action::pass) return std::nullopt;
  switch (op.reason) {
    case Reason::limited:
    case Reason::queue_full:
    case Reason::blocked:
      // The end of requests in flight is unknown: the shortest possible wait.
      return std::max<std::uint64_t>(seconds_rounded_up(op.decision.retry_after.value_or(kSecond)),
                                     1);
    case Reason::store_failed: return 1;
    default: return std::nullopt;
  }
}

}  // namespace sluice::frontend
