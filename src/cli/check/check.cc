#include "cli/check/check.h"

#include "app/config/configuration.h"
#include "app/server/serve_files.h"
#include "app/server/start_check.h"
#include "base/read_file.h"
#include "base/text.h"
#include "cli/check/bound.h"
#include "cli/rule_text.h"
#include "cli/terminal.h"
#include "embed/config/api_key_grammar.h"
#include "embed/limit_room.h"
#include "engine/overrides.h"
#include "rules/per_text.h"
#include <sluice/clock.h>
#include <sluice/core/limit_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace sluice::cli {
namespace {

constexpr std::string_view kCommand = "check";
constexpr std::size_t kFileBytesMax = 16U << 20U;

// Every limit of a rule, with the tier it is for.
template <class Visit>
void for_each_limit(const rules::Rule& rule, Visit&& visit) {
  for (const rules::RuleLimit& limit : rule.limits) visit(std::string_view{}, limit);
  if (!rule.tiers) return;
  for (const auto& [tier, limits] : rule.tiers->values) {
    for (const rules::RuleLimit& limit : limits) visit(std::string_view{tier}, limit);
  }
}

std::string effect_text(const rules::Rule& rule) {
  std::string text;
  const auto add = [&text](std::string_view word) {
    text += (text.empty() ? "" : ", ") + std::string{word};
  };
  if (rule.action.kind == rules::Action::Kind::shadow) add("shadow");
  if (rule.action.kind == rules::Action::Kind::drop) add("drop");
  if (rule.action.kind == rules::Action::Kind::queue) add("queue");
  if (rule.count) add("counts some responses");
  if (rule.block) add("blocks");
  if (rule.before_auth) add("before_auth");
  return text;
}

bool has_notes(const rules::Rule& rule) { return rule.tiers || !effect_text(rule).empty(); }

std::string notes_on(const rules::Rule& rule, std::string_view tier, bool is_first) {
  if (!tier.empty()) return fmt::format("tier {}", tier);
  return is_first ? effect_text(rule) : std::string{};
}

std::string override_text(const engine::Override& one) {
  return fmt::format("with override {} (multiplier {})", one.subject.written(),
                     format_thousandths(one.permille));
}

std::string table_of(const app::Configuration& configuration, WallTime now, const Output& output) {
  const rules::RuleList& list = configuration.rules;
  const auto& overrides = configuration.exceptions.overrides;
  const bool notes_wanted = !overrides.empty() || std::ranges::any_of(list.rules, has_notes);
  Table table{{{"rule"}, {"per"}, {"limit"}, {"most admitted"}, {notes_wanted ? "notes" : ""}}};
  for (const rules::Rule& rule : list.rules) {
    const engine::Override* const more = most_generous(rule, overrides, now);
    bool first = true;
    for_each_limit(rule, [&](std::string_view tier, const rules::RuleLimit& limit) {
      const std::string name = first ? rule.name : std::string{};
      const Bound bound = bound_of(rule, limit);
      table.add({name, first ? per_text(rule) : "", limit_text(limit),
                 bound_text(bound, limit.limit), notes_on(rule, tier, first)});
      first = false;
      if (more == nullptr || !bound.most) return;
      table.add({"", "", "", bound_text(bound_of(rule, limit, more->permille), limit.limit),
                 override_text(*more)});
    });
  }
  return table.text(output);
}

// What the most generous override makes of a bound.
std::string json_of(const rules::Rule& rule, const rules::RuleLimit& limit,
                    const engine::Override* more) {
  if (more == nullptr) return "null";
  const Bound bound = bound_of(rule, limit, more->permille);
  if (!bound.most) return "null";
  return fmt::format(R"({{"subject":{},"multiplier":{},"most":{},"bound":{}}})",
                     json_string(more->subject.written()), format_thousandths(more->permille),
                     *bound.most, json_string(bound_text(bound, limit.limit)));
}

std::string json_of(const rules::Rule& rule, const rules::RuleLimit& limit, std::string_view tier,
                    const engine::Override* more) {
  const Bound bound = bound_of(rule, limit);
  return fmt::format(
      R"({{"rate":{},"algorithm":{},"tier":{},"most":{},"plus_in_flight":{},"bound":{},)"
      R"("with_override":{}}})",
      json_string(core::rate_text(limit.limit)), json_string(to_string(limit.limit.algorithm)),
      tier.empty() ? "null" : json_string(tier), bound.most ? std::to_string(*bound.most) : "null",
      bound.in_flight, json_string(bound_text(bound, limit.limit)), json_of(rule, limit, more));
}

std::string json_of(const app::Configuration& configuration, WallTime now) {
  std::string rules;
  for (const rules::Rule& rule : configuration.rules.rules) {
    const engine::Override* const more =
        most_generous(rule, configuration.exceptions.overrides, now);
    std::string limits;
    for_each_limit(rule, [&](std::string_view tier, const rules::RuleLimit& limit) {
      limits += (limits.empty() ? "" : ",") + json_of(rule, limit, tier, more);
    });
    std::string per;
    for (const rules::Per& one : rule.per) {
      per += (per.empty() ? "" : ",") + json_string(per_text(one));
    }
    rules += fmt::format(R"({}{{"name":{},"domain":{},"per":[{}],"limits":[{}]}})",
                         rules.empty() ? "" : ",", json_string(rule.name), json_string(rule.domain),
                         per, limits);
  }
  return rules;
}

// ---- trees of envoyproxy/ratelimit --------------------------------------------------------------

std::size_t limits_in(const rules::EnvoyRules& trees, std::string_view domain) {
  const auto limits = trees.limits();
  return static_cast<std::size_t>(std::ranges::count_if(
      limits, [domain](const rules::EnvoyLimit* limit) { return limit->domain == domain; }));
}

std::string table_of(const rules::EnvoyRules& trees, const Output& output) {
  Table table{{{"domain"}, {"limits"}}};
  for (const std::string_view domain : trees.domains()) {
    table.add({std::string{domain}, std::to_string(limits_in(trees, domain))});
  }
  return table.text(output);
}

std::string json_of(const rules::EnvoyRules& trees) {
  std::string domains;
  for (const std::string_view domain : trees.domains()) {
    domains += fmt::format(R"({}{{"name":{},"limits":{}}})", domains.empty() ? "" : ",",
                           json_string(domain), limits_in(trees, domain));
  }
  return domains;
}

// ---- the result ---------------------------------------------------------------------------------

std::string summary(const rules::RuleList& list, const rules::EnvoyRules* trees) {
  if (trees == nullptr) return counted(list.rules.size(), "rule");
  const std::string limits = fmt::format("{} in {}", counted(trees->limits().size(), "limit"),
                                         counted(trees->domains().size(), "domain"));
  return list.rules.empty() ? limits
                            : fmt::format("{}, {}", counted(list.rules.size(), "rule"), limits);
}

// Warnings are shown above.
std::string verdict(const config::Diagnostics& diagnostics) {
  if (diagnostics.warnings() == 0) return "nothing wrong";
  return fmt::format("valid, {}", counted(diagnostics.warnings(), "warning"));
}

// `trees`: null if there are none, or they were not read.
ExitCode report(const app::Configuration& configuration, const rules::EnvoyRules* trees,
                const config::Diagnostics& diagnostics, const CheckOptions& options) {
  Output output;
  const WallTime now = SystemClock{}.now().wall();
  const rules::RuleList& list = configuration.rules;
  if (options.json) {
    std::string mistakes = diagnostics.json();
    mistakes.pop_back();  // its closing brace
    const std::string domains =
        trees == nullptr ? "" : fmt::format(",\"domains\":[{}]", json_of(*trees));
    output.write(
        fmt::format("{},\"rules\":[{}]{}}}\n", mistakes, json_of(configuration, now), domains));
  } else {
    output.write(
        fmt::format("{}: {}, {}\n", options.file, summary(list, trees), verdict(diagnostics)));
    if (!list.rules.empty()) output.write("\n" + table_of(configuration, now, output));
    if (trees != nullptr) output.write("\n" + table_of(*trees, output));
    if (list.unmatched == rules::Unmatched::reject) {
      output.write("\nRequests that no rule matches are rejected with 503.\n");
    }
  }
  return output.finish(kCommand, ExitCode::ok);
}

ExitCode report_mistakes(const config::Diagnostics& diagnostics, const CheckOptions& options,
                         std::string_view addition = {}) {
  if (options.json) {
    Output output;
    output.write(diagnostics.json() + "\n");
    return output.finish(kCommand, ExitCode::negative);
  }
  fmt::print(stderr, "{}", diagnostics.text());
  complain(kCommand, fmt::format("{}: {}{}", options.file, counted(diagnostics.errors(), "mistake"),
                                 addition));
  return ExitCode::negative;
}

// At all that a server would open. The trees, if there are any.
std::shared_ptr<const rules::EnvoyRules> look_around(const app::Configuration& configuration,
                                                     const CheckOptions& options,
                                                     config::Diagnostics& diagnostics) {
  (void)embed::load_clients(configuration.clients, diagnostics);
  app::check_frontend_files(configuration.serve, diagnostics);
  app::check_start(
      configuration,
      options.start ? app::StartCheck::before_a_start : app::StartCheck::beside_a_server,
      diagnostics);
  return configuration.envoy ? embed::load_envoy(*configuration.envoy, diagnostics) : nullptr;
}

}  // namespace

ExitCode check(const CheckOptions& options) {
  if (options.print_schema || options.print_keys_schema || options.print_reference) {
    Output output;
    output.write(options.print_schema        ? app::configuration_schema() + "\n"
                 : options.print_keys_schema ? embed::key_file_schema() + "\n"
                                             : app::configuration_reference());
    return output.finish(kCommand, ExitCode::ok);
  }
  const Parsed<std::string> text = read_trusted_file(options.file, kFileBytesMax);
  if (!text) {
    complain(kCommand, text.error().text());
    return ExitCode::failure;
  }
  config::Diagnostics diagnostics;
  const embed::RulesText not_looked_at{.text = "rules: []", .file = {}};
  const app::Configuration configuration = app::read_configuration(
      *text, options.file, diagnostics, options.offline ? &not_looked_at : nullptr);
  if (diagnostics.ok()) {
    auto room = embed::check_room(configuration, SystemClock{}.now());
    if (!room) diagnostics.error(std::move(room.error()));
  }
  const bool is_bad = !diagnostics.ok();
  if (is_bad && options.offline) return report_mistakes(diagnostics, options);
  if (is_bad && !configuration.is_well_formed) {
    return report_mistakes(diagnostics, options,
                           "; what the file names is checked once it has no mistake");
  }
  std::shared_ptr<const rules::EnvoyRules> trees;
  if (!options.offline) trees = look_around(configuration, options, diagnostics);
  if (!diagnostics.ok()) {
    return report_mistakes(diagnostics, options,
                           is_bad ? "" : " in what it names (--offline does not look at that)");
  }
  if (!diagnostics.empty() && !options.json) fmt::print(stderr, "{}", diagnostics.text());
  return report(configuration, trees.get(), diagnostics, options);
}

}  // namespace sluice::cli
