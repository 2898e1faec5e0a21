// A file of envoyproxy/ratelimit of arbitrary bytes is loaded, or refused with reasons.
//
// Whoever asks for a limit by the very composites that lead to it finds it.

#include "fuzz.h"
#include "rules/envoy_rules.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace {

using sluice::DescriptorEntry;
using sluice::fuzz::expect;
using namespace sluice::rules;

// Key and value of a level that has both, as one level can be asked for in one way only.
DescriptorEntry entry_of(const EnvoyLevel& level) {
  const std::string_view composite = level.composite;
  const std::size_t key = composite.size() - level.value_pattern.size() - 1;
  return {composite.substr(0, key), composite.substr(key + 1)};
}

void check_limit(const EnvoyRules& rules, const EnvoyLimit& limit) {
  expect(limit.unlimited || seconds_of(limit.unit) > 0, "a limit has a unit");
  expect(!limit.levels.empty(), "a limit has a way to it");
  std::vector<DescriptorEntry> entries;
  for (const EnvoyLevel& level : limit.levels) {
    if (level.value_pattern.empty()) return;
    entries.push_back(entry_of(level));
  }
  expect(rules.match(limit.domain, entries) == &limit, "exact composites lead to their limit");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<EnvoyFile> files{{"fuzz", std::string{data, data + size}}};
  sluice::config::Diagnostics diagnostics;
  const EnvoyRules rules = load_envoy_rules(files, diagnostics);
  for (const auto& mistake : diagnostics.sorted()) {
    expect(!mistake.message.empty(), "a mistake has a message");
  }
  (void)diagnostics.text();
  const std::vector<DescriptorEntry> probe{{"ip", "10.0.0.1"}, {"path", "/a"}};
  for (const std::string_view domain : rules.domains()) (void)rules.match(domain, probe);
  if (!diagnostics.ok()) return 0;
  for (const EnvoyLimit* limit : rules.limits()) check_limit(rules, *limit);
  return 0;
}
