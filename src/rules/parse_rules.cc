#include "rules/parse_rules.h"

#include "base/text.h"
#include "rules/formats.h"
#include "rules/parse_context.h"
#include "rules/parse_effects.h"
#include "rules/parse_limits.h"
#include "rules/parse_match.h"
#include "rules/rule_checks.h"
#include "rules/rule_grammar.h"
#include "rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

namespace sluice::rules {
namespace {

using config::Checked;
using config::Diagnostics;
using config::Node;
using config::Reader;

template <class Words, class Enum>
void read_word(const Reader& reader, std::string_view key, const Words& words, Enum& value) {
  if (const Node* node = reader.find(key)) value = meaning_of(words, node->text);
}

void read_names(const Reader& reader, Rule& rule) {
  rule.name = reader.text("name");
  rule.domain = reader.text("domain", rule.domain);
  rule.group = reader.text("group");
}

void read_whom(const Reader& reader, Rule& rule, const ParseContext& context) {
  if (const Node* match = reader.find("match")) rule.match = parse_match(*match, context);
  if (const Node* per = reader.find("per")) {
    rule.per = parse_per_list(*per, context);
    check_path_parameters(rule.match, rule.per, *per, context);
  }
  read_word(reader, "on_missing", kOnMissingWords, rule.on_missing);
  rule.before_auth = reader.flag("before_auth", false);
}

// Options that no limit uses are a mistake, as is an option that its algorithm does not use.
void check_defaults_are_used(const Reader& reader, const Node* limits, const Node* tiers,
                             const ParseContext& context) {
  bool used = limits == nullptr || has_plain_text(*limits);
  const Node* values = tiers == nullptr ? nullptr : tiers->find("values");
  for (std::size_t i = 0; values != nullptr && values->is_map() && i < values->size(); ++i) {
    used = used || has_plain_text(values->value(i));
  }
  if (used) return;
  for (const std::string_view key :
       {"burst", "algorithm", "refill", "align", "timezone", "bucket_width"}) {
    if (!reader.has(key)) continue;
    context.diagnostics.error(
        *reader.find(key),
        fmt::format("'{}' of the rule is for limits written as plain text, and there is none", key),
        "write it in the limit");
  }
}

void read_limits(const Reader& reader, Rule& rule, const ParseContext& context) {
  LimitDefaults defaults = parse_limit_defaults(reader);
  if (rule.action.kind == Action::Kind::queue) defaults.max_delay = rule.action.max_delay;
  const Node* limits = reader.find("limit");
  const Node* tiers = reader.find("tiers");
  if (limits != nullptr) rule.limits = parse_limits(*limits, defaults, context);
  if (tiers != nullptr) rule.tiers = parse_tiers(*tiers, defaults, context);
  check_defaults_are_used(reader, limits, tiers, context);
}

void read_effects(const Reader& reader, Rule& rule, const ParseContext& context) {
  if (const Node* cost = reader.find("cost")) rule.cost = parse_cost(*cost, context);
  if (const Node* count = reader.find("count")) rule.count = parse_count(*count, context);
  if (const Node* action = reader.find("action")) rule.action = parse_action(*action, context);
  if (const Node* block = reader.find("block")) rule.block = parse_block(*block, context);
}

void read_keeping(const Reader& reader, Rule& rule) {
  read_word(reader, "on_change", kOnChangeWords, rule.on_change);
  read_word(reader, "on_table_full", kOnTableFullWords, rule.on_table_full);
  rule.thread_leases = reader.flag("thread_leases", false);
  read_word(reader, "mode", kModeWords, rule.sharing.mode);
  read_word(reader, "on_failure", kOnFailureWords, rule.sharing.on_failure);
  if (const Node* tolerance = reader.find("tolerance")) {
    rule.sharing.tolerance_permille =
        parse_permille(tolerance->text).value_or(rule.sharing.tolerance_permille);
  }
}

Rule read_rule(const Node& node, const ParseContext& context) {
  const Reader reader{node, rule_section(), context.checked};
  Rule rule;
  rule.place = node.place();
  read_names(reader, rule);
  read_whom(reader, rule, context);
  read_effects(reader, rule, context);
  read_limits(reader, rule, context);
  read_keeping(reader, rule);
  check_rule(rule, reader, context);
  return rule;
}

struct MaxRules {
  std::uint64_t total = 10'000;
  std::uint64_t per_domain = 10'000;
};

MaxRules read_max_rules(const Reader& file, const Checked& checked) {
  const Node* const node = file.find("max_rules");
  if (node == nullptr) return {};
  if (node->is_scalar()) {
    const std::uint64_t most = config::number_of(*node);
    return {.total = most, .per_domain = most};
  }
  const Reader reader{*node, max_rules_section(), checked};
  const MaxRules usual;
  return {.total = reader.number("total").value_or(usual.total),
          .per_domain = reader.number("per_domain").value_or(usual.per_domain)};
}

bool too_many(const Node& list, const MaxRules& max, Diagnostics& diagnostics) {
  if (list.children.size() <= max.total) return false;
  diagnostics.error(
      list,
      fmt::format("max_rules: there are {} rules, at most {} are allowed", list.children.size(),
                  max.total),
      fmt::format("remove some, or write max_rules: {} beside 'rules'", list.children.size()));
  return true;
}

void check_domains(const std::vector<WrittenRule>& rules, const MaxRules& max,
                   Diagnostics& diagnostics) {
  std::unordered_map<std::string_view, std::size_t> counts;
  for (const auto& [rule, node] : rules) {
    if (++counts[rule->domain] != max.per_domain + 1) continue;
    diagnostics.error(*node,
                      fmt::format("max_rules: the domain {} has more than {} rules",
                                  quoted(rule->domain), max.per_domain),
                      "remove some, or raise per_domain of max_rules");
  }
}

// True, false, or a list of hosts.
IgnoringHosts read_ignoring(const Reader& reader, std::string_view key) {
  IgnoringHosts ignoring;
  const Node* const node = reader.find(key);
  if (node == nullptr) return ignoring;
  if (!node->is_list()) {
    ignoring.everywhere = reader.flag(key, false);
    return ignoring;
  }
  for (const Node* host : reader.list(key)) ignoring.hosts.push_back(host_name(host->text));
  return ignoring;
}

// One word for all hosts, or words by host.
SlashesByHost read_escaped_slashes(const Reader& file, const Checked& checked,
                                   Diagnostics& diagnostics) {
  SlashesByHost slashes;
  const Node* const node = file.find("escaped_slashes");
  if (node == nullptr) return slashes;
  if (!node->is_map()) {
    slashes.otherwise = meaning_of(kEscapedSlashesWords, node->text);
    return slashes;
  }
  const Reader reader{*node, escaped_slashes_section(), checked};
  read_word(reader, "default", kEscapedSlashesWords, slashes.otherwise);
  const Node* const hosts = reader.find("hosts");
  for (std::size_t i = 0; hosts != nullptr && i < hosts->size(); ++i) {
    if (!checked.good(hosts->value(i))) continue;
    std::string host = host_name(hosts->key(i).text);
    if (std::ranges::find(slashes.hosts, host, &SlashesByHost::Host::pattern) !=
        slashes.hosts.end()) {
      diagnostics.error(hosts->key(i),
                        fmt::format("escaped_slashes: {} occurs twice", quoted(host)),
                        "remove one of the two");
      continue;
    }
    slashes.hosts.push_back({.pattern = std::move(host),
                             .setting = meaning_of(kEscapedSlashesWords, hosts->value(i).text)});
  }
  return slashes;
}

}  // namespace

RuleList read_rules(const Node& map, const Checked& checked, Diagnostics& diagnostics) {
  const Reader reader{map, rules_file_section(), checked};
  RuleList list;
  read_word(reader, "unmatched", kUnmatchedWords, list.unmatched);
  list.case_insensitive_paths = read_ignoring(reader, "case_insensitive_paths");
  list.ignore_path_parameters = read_ignoring(reader, "ignore_path_parameters");
  list.escaped_slashes = read_escaped_slashes(reader, checked, diagnostics);
  const MaxRules max = read_max_rules(reader, checked);
  const Node* rules = reader.find("rules");
  if (rules == nullptr || too_many(*rules, max, diagnostics)) return list;

  LimitProver prover;
  const ParseContext context{checked, diagnostics, prover};
  std::vector<const Node*> nodes = items_of(*rules, checked);
  list.rules.reserve(nodes.size());
  std::vector<WrittenRule> written;
  for (const Node* node : nodes) {
    list.rules.push_back(read_rule(*node, context));
    written.push_back({&list.rules.back(), node});
  }
  check_rules_together(written, context);
  check_case(written, list.case_insensitive_paths, context);
  check_parameters(written, list.ignore_path_parameters, context);
  check_prefixes(written, context);
  check_escaped_slashes(written, list.escaped_slashes, context);
  check_domains(written, max, diagnostics);
  return list;
}

RuleList parse_rules(const config::Document& document, Diagnostics& diagnostics) {
  const Node& root = document.root;
  if (root.is_null()) {
    diagnostics.error(root, "the file is empty", "write rules: and a list of rules");
    return {};
  }
  if (root.is_list()) {
    diagnostics.error(root, "the list of rules has no key", "write rules: above it");
    return {};
  }
  const Checked checked = check(root, rules_file_shape(), "the file", diagnostics);
  return root.is_map() ? read_rules(root, checked, diagnostics) : RuleList{};
}

RuleList parse_rules_text(std::string_view text, std::string_view file, Diagnostics& diagnostics) {
  const auto document = config::parse_document(text, file, diagnostics);
  return document ? parse_rules(*document, diagnostics) : RuleList{};
}

}  // namespace sluice::rules
