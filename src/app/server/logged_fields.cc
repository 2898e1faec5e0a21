#include "app/server/logged_fields.h"

namespace sluice::app {
namespace {

using Options = frontend::AccessFormat::Options;

// If a rule only checks for presence, the log has the name without the value.
void add(const std::vector<rules::NamedMatch>& matches, std::vector<std::string>& values,
         std::vector<std::string>& names) {
  for (const rules::NamedMatch& match : matches) {
    const bool is_enough = match.value.kind == rules::TextMatch::Kind::present;
    (is_enough ? names : values).push_back(match.name);
  }
}

void add(const std::vector<rules::RuleLimit>& limits, Options& options) {
  for (const rules::RuleLimit& limit : limits) {
    if (!limit.from || limit.from->kind != rules::AmountFrom::Kind::header) continue;
    options.headers.push_back(limit.from->name);
    options.trust = true;
  }
}

void add(const rules::Rule& rule, Options& options) {
  add(rule.match.headers, options.headers, options.header_names);
  add(rule.match.cookies, options.cookies, options.cookie_names);
  for (const rules::Per& per : rule.per) {
    if (per.kind == rules::Per::Kind::header) options.headers.push_back(per.name);
  }
  if (rule.cost.kind == rules::CostRule::Kind::header) options.headers.push_back(rule.cost.name);
  add(rule.limits, options);
  if (!rule.tiers) return;
  for (const auto& [tier, limits] : rule.tiers->values) add(limits, options);
}

}  // namespace

Options logged_fields(const Configuration& configuration) {
  Options options;
  options.secrets = secrets_of(configuration.clients);
  for (const rules::Rule& rule : configuration.rules.rules) add(rule, options);
  return options;
}

}  // namespace sluice::app
