#include "cli/check/check.h"

#include "app/api_key_grammar.h"
#include "app/configuration.h"
#include "base/read_file.h"
#include "base/text.h"
#include "cli/rule_text.h"
#include "cli/terminal.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/core/limit_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
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
  if (rule.over.kind == rules::Over::Kind::shadow) add("shadow");
  if (rule.over.kind == rules::Over::Kind::drop) add("drop");
  if (rule.over.kind == rules::Over::Kind::queue) add("queue");
  if (rule.count) add("counts some answers");
  if (rule.block) add("blocks");
  if (rule.before_auth) add("before_auth");
  return text;
}

bool has_notes(const rules::Rule& rule) { return rule.tiers || !effect_text(rule).empty(); }

std::string table_of(const rules::RuleList& list, const Output& output) {
  const bool notes_wanted = std::ranges::any_of(list.rules, has_notes);
  Table table{{{"rule"}, {"per"}, {"limit"}, {"most admitted"}, {notes_wanted ? "notes" : ""}}};
  for (const rules::Rule& rule : list.rules) {
    bool first = true;
    for_each_limit(rule, [&](std::string_view tier, const rules::RuleLimit& limit) {
      const std::string name = first ? rule.name : std::string{};
      const std::string notes =
          tier.empty() ? (first ? effect_text(rule) : "") : fmt::format("tier {}", tier);
      table.add(
          {name, first ? per_text(rule) : "", limit_text(limit), bound_text(limit.limit), notes});
      first = false;
    });
  }
  return table.text(output);
}

std::string json_of(const rules::RuleList& list) {
  std::string rules;
  for (const rules::Rule& rule : list.rules) {
    std::string limits;
    for_each_limit(rule, [&](std::string_view tier, const rules::RuleLimit& limit) {
      limits += fmt::format(
          R"({}{{"rate":{},"algorithm":{},"tier":{},"most":{}}})", limits.empty() ? "" : ",",
          json_string(core::rate_text(limit.limit)), json_string(to_string(limit.limit.algorithm)),
          tier.empty() ? "null" : json_string(tier), core::most_admitted(limit.limit));
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

ExitCode report(const app::Configuration& configuration, const config::Diagnostics& diagnostics,
                const CheckOptions& options) {
  Output output;
  const rules::RuleList& list = configuration.rules;
  if (options.json) {
    std::string mistakes = diagnostics.json();
    mistakes.pop_back();  // its closing brace
    output.write(fmt::format("{},\"rules\":[{}]}}\n", mistakes, json_of(list)));
  } else {
    output.write(fmt::format("{}: {} {}, nothing wrong\n", options.file, list.rules.size(),
                             list.rules.size() == 1 ? "rule" : "rules"));
    if (!list.rules.empty()) output.write("\n" + table_of(list, output));
    if (list.unmatched == rules::Unmatched::reject) {
      output.write("\nRequests that no rule matches are answered 503.\n");
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
  complain(kCommand, fmt::format("{}: {} {}{}", options.file, diagnostics.errors(),
                                 diagnostics.errors() == 1 ? "mistake" : "mistakes", addition));
  return ExitCode::negative;
}

}  // namespace

ExitCode check(const CheckOptions& options) {
  if (options.print_schema || options.print_keys_schema || options.print_reference) {
    Output output;
    output.write(options.print_schema        ? app::configuration_schema() + "\n"
                 : options.print_keys_schema ? app::key_file_schema() + "\n"
                                             : app::configuration_reference());
    return output.finish(kCommand, ExitCode::ok);
  }
  const Parsed<std::string> text = sluice::read_file(options.file, kFileBytesMax);
  if (!text) {
    complain(kCommand, text.error().text());
    return ExitCode::failure;
  }
  config::Diagnostics diagnostics;
  const app::Configuration configuration =
      app::read_configuration(*text, options.file, diagnostics);
  if (!diagnostics.ok()) return report_mistakes(diagnostics, options);
  if (!options.offline && app::load_clients(configuration.clients, diagnostics) == nullptr) {
    return report_mistakes(diagnostics, options,
                           " in the files that it names (--offline does not look at those)");
  }
  if (!diagnostics.empty() && !options.json) fmt::print(stderr, "{}", diagnostics.text());
  return report(configuration, diagnostics, options);
}

}  // namespace sluice::cli
