// Rules in a file of their own, for a server: watched, polled, and kept for a start at which the
// file is invalid or missing.
//
// Accepted rules are applied from its own thread. Thread-safe, but for start() and stop().
#pragma once

#include "app/config/configuration.h"
#include "app/server/log_line.h"
#include "rules/source/file_source.h"
#include "rules/sync/rule_sync.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <string>

namespace sluice::app {

class RuleFeed {
 public:
  struct Parts {
    const Clock& clock;  // outlives it
    rules::RuleSync::Accept accept;
    Say say;  // from any thread
  };
  RuleFeed(const embed::RulesFileConfig& config, Parts parts);

  // Returns once there are rules: the file's, or those of the last run. Else an error with the
  // reason.
  [[nodiscard]] Parsed<void> start() { return sync_.start(); }
  void stop() noexcept { sync_.stop(); }
  void read_now() { sync_.sync_now(); }
  [[nodiscard]] rules::SyncStatus status() const { return sync_.status(); }

 private:
  rules::FileSource source_;
  rules::RuleSync sync_;  // after its inputs
};

// The line for the operator; empty: none.
[[nodiscard]] std::string line_about(const rules::SyncReport& report,
                                     const embed::RulesFileConfig& config);

}  // namespace sluice::app
