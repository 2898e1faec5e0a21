// Rules in a file of their own, as a server takes them: watched, read now and then, and kept for a
// start at which the file is wrong or missing.
//
// What is accepted comes into force in a thread of its own. Thread-safe, but for start() and
// stop().
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

  // Returns when there are rules: the file's, or those of the last run. Else says why there are
  // none.
  [[nodiscard]] Parsed<void> start() { return sync_.start(); }
  void stop() noexcept { sync_.stop(); }
  void read_now() { sync_.sync_now(); }
  [[nodiscard]] rules::SyncStatus status() const { return sync_.status(); }

 private:
  rules::FileSource source_;
  rules::RuleSync sync_;  // behind what it uses
};

// What an operator is told; empty: nothing.
[[nodiscard]] std::string line_about(const rules::SyncReport& report,
                                     const embed::RulesFileConfig& config);

}  // namespace sluice::app
