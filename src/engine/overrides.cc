#include "engine/overrides.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::engine {
namespace {

rules::Per::Kind per_kind(Subject::Kind kind) noexcept {
  switch (kind) {
    case Subject::Kind::ip: return rules::Per::Kind::ip;
    case Subject::Kind::api_key: return rules::Per::Kind::api_key;
    case Subject::Kind::user: return rules::Per::Kind::user;
    case Subject::Kind::tenant: return rules::Per::Kind::tenant;
  }
  return rules::Per::Kind::ip;
}

}  // namespace

Parsed<std::uint32_t> parse_multiplier(std::string_view text) {
  const std::optional<std::uint64_t> permille = parse_thousandths(text);
  if (permille && *permille > 0 && *permille <= kPermilleMax) {
    return static_cast<std::uint32_t>(*permille);
  }
  return mistake(fmt::format("{} is not a multiplier", quoted(text)),
                 "write 2, 1.5 or 0.25: from 0.001 to 1000, with at most three decimal places");
}

Limit multiplied(Limit limit, std::uint32_t permille) noexcept {
  const auto times = [permille](std::uint64_t units) {
    return std::max<std::uint64_t>(units * permille / 1000, 1);
  };
  limit.amount = times(limit.amount);
  if (limit.burst) limit.burst = times(*limit.burst);
  limit.stands_in = true;
  return limit;
}

bool is_per(const rules::Rule& rule, Subject::Kind kind) noexcept {
  return std::ranges::find(rule.per, per_kind(kind), &rules::Per::kind) != rule.per.end();
}

}  // namespace sluice::engine
