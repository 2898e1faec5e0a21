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

Parsed<std::uint32_t> parse_factor(std::string_view text) {
  const auto wrong = [&] {
    return mistake(fmt::format("{} is not a factor", quoted(text)),
                   "write 2x, 1.5x or 0.25x: from 0.001x to 1000x");
  };
  if (!text.ends_with('x')) return wrong();
  const std::string_view number = text.substr(0, text.size() - 1);
  const std::size_t dot = number.find('.');
  const std::string_view decimals =
      dot == std::string_view::npos ? std::string_view{} : number.substr(dot + 1);
  if (dot != std::string_view::npos && (decimals.empty() || decimals.size() > 3)) return wrong();
  const std::optional<std::uint64_t> whole = parse_number(number.substr(0, dot));
  std::string thousandths{decimals};
  thousandths.resize(3, '0');
  const std::optional<std::uint64_t> rest = parse_number(thousandths);
  if (!whole || !rest || *whole > kPermilleMax / 1000) return wrong();
  const std::uint64_t permille = *whole * 1000 + *rest;
  if (permille == 0 || permille > kPermilleMax) return wrong();
  return static_cast<std::uint32_t>(permille);
}

std::string format_factor(std::uint32_t permille) {
  if (permille % 1000 == 0) return fmt::format("{}x", permille / 1000);
  std::string text = fmt::format("{}.{:03}", permille / 1000, permille % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  return text + "x";
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
