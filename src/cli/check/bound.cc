#include "cli/check/bound.h"

#include "base/duration.h"
#include <sluice/core/compiled_limit.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::cli {
namespace {

// A refund makes room in a window that its first request opened; then that window holds as much as
// one which begins by the clock.
std::uint64_t most_of(const rules::Rule& rule, const Limit& limit) noexcept {
  const std::uint64_t most = core::most_admitted(limit);
  const bool may_refund = rule.count && !rule.count->after;
  return may_refund && limit.align == Align::first_request ? most + 1 : most;
}

// An override multiplies what a request brings along, and the written burst with it, as far as that
// can be enforced.
Limit largest(const rules::RuleLimit& written, std::uint32_t permille) noexcept {
  Limit limit = written.limit;
  if (written.from) limit.amount = std::max(limit.amount, written.from->max);
  limit = engine::multiplied(std::move(limit), permille);
  limit.amount = std::min(limit.amount, core::kAmountMax);
  if (limit.burst) limit.burst = std::min(*limit.burst, core::kAmountMax);
  return limit;
}

}  // namespace

Bound bound_of(const rules::Rule& rule, const rules::RuleLimit& limit, std::uint32_t permille) {
  if (rule.action.kind == rules::Action::Kind::shadow) return {};
  const bool concurrency = limit.limit.algorithm == Algorithm::concurrency;
  return {.most = most_of(rule, largest(limit, permille)),
          .in_flight = rule.count && rule.count->after && !concurrency};
}

const engine::Override* most_generous(const rules::Rule& rule,
                                      std::span<const engine::Override> overrides,
                                      WallTime now) noexcept {
  const engine::Override* most = nullptr;
  for (const engine::Override& one : overrides) {
    if (!one.holds(now) || !engine::is_per(rule, one.subject.kind)) continue;
    if (one.permille > (most == nullptr ? 1000 : most->permille)) most = &one;
  }
  return most;
}

std::string bound_text(const Bound& bound, const Limit& limit) {
  if (!bound.most) return "none (shadow)";
  if (limit.algorithm == Algorithm::concurrency) return fmt::format("{} in flight", *bound.most);
  const std::string period =
      limit.unit ? std::string{to_string(*limit.unit)} : format_duration(limit.period);
  return fmt::format("{} in any {}{}", *bound.most, period, bound.in_flight ? " + in flight" : "");
}

}  // namespace sluice::cli
