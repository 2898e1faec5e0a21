#include "cli/rule_text.h"

#include "base/duration.h"
#include <sluice/core/limit_text.h>

#include <fmt/format.h>

namespace sluice::cli {

std::string per_text(const rules::Per& per) {
  using Kind = rules::Per::Kind;
  switch (per.kind) {
    case Kind::user: return "user";
    case Kind::api_key: return "api_key";
    case Kind::tenant: return "tenant";
    case Kind::ip:
      if (per.v6_bits != 64) return fmt::format("ip/{}/{}", per.v4_bits, per.v6_bits);
      return per.v4_bits != 32 ? fmt::format("ip/{}", per.v4_bits) : "ip";
    case Kind::country: return "country";
    case Kind::asn: return "asn";
    case Kind::method: return "method";
    case Kind::route: return "route";
    case Kind::path: return "path." + per.name;
    case Kind::header: return "header." + per.name;
    case Kind::query: return "query." + per.name;
    case Kind::claim: return "claim." + per.name;
    case Kind::attribute: return "attribute." + per.name;
    case Kind::descriptor: return "descriptor." + per.name;
  }
  return {};
}

std::string per_text(const rules::Rule& rule) {
  std::string text;
  for (const rules::Per& per : rule.per) text += (text.empty() ? "" : ", ") + per_text(per);
  return text.empty() ? "everybody" : text;
}

std::string limit_text(const rules::RuleLimit& limit) {
  std::string text =
      fmt::format("{} {}", core::rate_text(limit.limit), to_string(limit.limit.algorithm));
  if (limit.limit.burst) text += fmt::format(", burst {}", *limit.limit.burst);
  if (limit.limit.queue) {
    text += fmt::format(", queue {}", format_duration(*limit.limit.queue));
  }
  if (limit.from) text += fmt::format(", from {} up to {}", limit.from->name, limit.from->max);
  return text;
}

}  // namespace sluice::cli
