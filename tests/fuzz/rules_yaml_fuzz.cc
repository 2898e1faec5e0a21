// A file of rules of arbitrary bytes is read, or refused with reasons that have places.
//
// What is accepted holds what the rest relies on: limits that compile, names, no two alike. A tree
// written as JSON reads back as itself.

#include "config/json.h"
#include "fuzz.h"
#include "rules/parse_limits.h"
#include "rules/parse_rules.h"
#include <sluice/core/compiled_limit.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using sluice::config::Diagnostics;
using sluice::config::Document;
using sluice::fuzz::expect;
using namespace sluice::rules;

void check_mistakes(const Diagnostics& diagnostics) {
  for (const auto& mistake : diagnostics.sorted()) {
    expect(!mistake.message.empty(), "a mistake has a message");
    expect(mistake.place.line > 0 && mistake.place.column > 0, "a mistake has a place");
  }
  expect(diagnostics.empty() == diagnostics.text().empty(), "mistakes can be shown");
  expect(!diagnostics.json().empty(), "mistakes can be shown as JSON");
}

void check_tree(const Document& document) {
  const std::string once = sluice::config::to_json(document.root);
  Diagnostics diagnostics;
  const auto again = sluice::config::parse_document(once, "again", diagnostics);
  expect(again && diagnostics.ok(), "a tree as JSON can be read");
  expect(sluice::config::to_json(again->root) == once, "a tree survives JSON");
}

void check_limits(const std::vector<RuleLimit>& limits) {
  expect(!limits.empty(), "there is a limit");
  std::set<std::string> identities;
  for (const RuleLimit& limit : limits) {
    expect(sluice::core::compile(limit.limit).has_value(), "an accepted limit can be enforced");
    expect(identities.insert(limit_identity(limit)).second, "no two limits share a key");
  }
}

void check_rules(const RuleList& list) {
  std::set<std::pair<std::string, std::string>> names;
  for (const Rule& rule : list.rules) {
    expect(!rule.name.empty(), "a rule has a name");
    expect(names.emplace(rule.domain, rule.name).second, "no two rules have the same name");
    check_limits(rule.limits);
    if (!rule.tiers) continue;
    for (const auto& [tier, limits] : rule.tiers->values) check_limits(limits);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{data, data + size};
  Diagnostics diagnostics;
  const auto document = sluice::config::parse_document(text, "fuzz", diagnostics);
  expect(document || !diagnostics.ok(), "a text that cannot be read comes with a reason");
  if (!document || !diagnostics.ok()) {
    check_mistakes(diagnostics);
    return 0;
  }
  check_tree(*document);
  const RuleList list = parse_rules(*document, diagnostics);
  check_mistakes(diagnostics);
  if (diagnostics.ok()) check_rules(list);
  return 0;
}
