#include "embed/limit_room.h"

#include "engine/envoy_snapshot.h"
#include "engine/overrides.h"
#include "engine/snapshot.h"
#include "rules/envoy_rules.h"
#include "rules/rule_set.h"
#include "store/local/limit_counter.h"
#include "store/local/mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::embed {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20U;

// In whole mebibytes.
std::string memory_for(std::size_t limits) {
  std::size_t mebibytes = limits * sizeof(store::LimitRecord) * store::kLimitsPart / kMebibyte + 1;
  while (store::Mapping::limits_within(mebibytes * kMebibyte) < limits) ++mebibytes;
  return fmt::format("{}MiB", mebibytes);
}

}  // namespace

// Uses the snapshots that a server would make.
Parsed<std::size_t> distinct_limits(const EngineConfiguration& configuration, Now now) {
  store::LimitCounter counter;
  std::vector<engine::Override> overrides;
  std::ranges::copy_if(configuration.exceptions.overrides, std::back_inserter(overrides),
                       [&](const engine::Override& one) { return one.holds(now.wall()); });
  const auto snapshot =
      engine::Snapshot::make(std::make_shared<const rules::RuleSet>(configuration.rules),
                             std::move(overrides), counter, now);
  if (!snapshot) return tl::unexpected(snapshot.error());
  if (configuration.envoy) {
    // The counters are the same for all trees, so these are not read.
    const auto trees = engine::EnvoySnapshot::make(std::make_shared<const rules::EnvoyRules>(),
                                                   configuration.envoy->modes, counter, now);
    if (!trees) return tl::unexpected(trees.error());
  }
  return counter.size();
}

Parsed<void> check_room(const EngineConfiguration& configuration, Now now) {
  const Parsed<std::size_t> needed = distinct_limits(configuration, now);
  if (!needed) return tl::unexpected(needed.error());
  const std::size_t memory = configuration.state.memory;
  const std::size_t room = store::Mapping::limits_within(memory);
  if (*needed <= room) return {};
  return mistake(fmt::format("the rules have {} different limits, and {}MiB of memory hold {}",
                             *needed, memory / kMebibyte, room),
                 fmt::format("write state: {{memory: {}}}, or use fewer different limits",
                             memory_for(*needed)));
}

}  // namespace sluice::embed
