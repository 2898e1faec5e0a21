#include "cli/rule_text.h"

#include "base/duration.h"
#include "rules/per_text.h"
#include <sluice/core/limit_text.h>

#include <fmt/format.h>

namespace sluice::cli {

std::string per_text(const rules::Rule& rule) {
  std::string text;
  for (const rules::Per& per : rule.per) text += (text.empty() ? "" : ", ") + per_text(per);
  return text.empty() ? "everybody" : text;
}

std::string limit_text(const rules::RuleLimit& limit) {
  std::string text =
      fmt::format("{} {}", core::rate_text(limit.limit), to_string(limit.limit.algorithm));
  if (limit.limit.burst) text += fmt::format(", burst {}", *limit.limit.burst);
  if (limit.limit.max_delay) {
    text += fmt::format(", max_delay {}", format_duration(*limit.limit.max_delay));
  }
  if (limit.from) text += fmt::format(", from {} up to {}", limit.from->name, limit.from->max);
  return text;
}

}  // namespace sluice::cli
