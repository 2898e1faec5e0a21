#include "app/server/rule_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace sluice::app {
namespace {

rules::RuleSyncOptions options_for(const embed::RulesFileConfig& config, const Clock& clock) {
  rules::RuleSyncOptions options;
  options.schedule.interval = config.poll_interval;
  options.schedule.retry = std::min(options.schedule.retry, config.poll_interval);
  options.schedule.retry_max = std::max(config.poll_interval, options.schedule.retry);
  // Nodes started together do not poll together.
  options.seed = static_cast<std::uint64_t>(clock.now().wall().time_since_epoch().count());
  options.last_good_file = config.last_good_file;
  return options;
}

LogLevel level_of(rules::SyncEvent event) noexcept {
  switch (event) {
    case rules::SyncEvent::accepted:
    case rules::SyncEvent::recovered: return LogLevel::info;
    case rules::SyncEvent::rejected:
    case rules::SyncEvent::failed: return LogLevel::error;
    case rules::SyncEvent::last_good_used:
    case rules::SyncEvent::last_good_ignored:
    case rules::SyncEvent::not_kept: break;
  }
  return LogLevel::warning;
}

}  // namespace

RuleFeed::RuleFeed(const embed::RulesFileConfig& config, Parts parts)
    : source_(config.file),
      sync_(source_, std::move(parts.accept), parts.clock, options_for(config, parts.clock),
            [config, say = std::move(parts.say)](const rules::SyncReport& report) {
              std::string line = line_about(report, config);
              if (!line.empty()) say(level_of(report.event), std::move(line));
            }) {}

std::string line_about(const rules::SyncReport& report, const embed::RulesFileConfig& config) {
  const std::string why = report.diagnosis.text();
  switch (report.event) {
    case rules::SyncEvent::accepted: return {};  // Control logs it
    case rules::SyncEvent::rejected:
      return fmt::format("the rules in {} are not used:\n{}", config.file, why);
    case rules::SyncEvent::failed:
      return fmt::format("the rules in {} cannot be read: {}", config.file, why);
    case rules::SyncEvent::recovered:
      return fmt::format("the rules in {} are those in force again", config.file);
    case rules::SyncEvent::last_good_used:
      return fmt::format("went on with the rules of the last run, from {}", config.last_good_file);
    case rules::SyncEvent::last_good_ignored:
      return fmt::format("the rules of the last run are not used: {}", why);
    case rules::SyncEvent::not_kept:
      return fmt::format("the rules in force are not kept for the next start: {}", why);
  }
  return {};
}

}  // namespace sluice::app
