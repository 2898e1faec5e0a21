// The server as operators see it: asks the workers, adds up, updates the gauges.
//
// Workers are asked when an operator looks, and report between two turns of their loops. A worker
// that exceeds kPatience is shown with its last report. Thread-safe; everything that it refers to
// outlives it.
#pragma once

#include "app/server/gauges.h"
#include "app/server/rule_feed.h"
#include "app/server/server_facts.h"
#include "app/server/server_worker.h"
#include "app/server/worker_report.h"
#include "embed/engine_state.h"
#include "frontend/server_view.h"
#include "metrics/registry.h"
#include <sluice/clock.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sluice::app {

class Overview final : public frontend::ServerView {
 public:
  struct Parts {
    const ServerFacts& facts;
    embed::EngineState& state;
    metrics::Registry& registry;
    const std::vector<std::unique_ptr<ServerWorker>>& workers;
    const RuleFeed* feed;  // null: rules are in the configuration itself
    const Clock& clock;
  };
  // No worker counts with `shard`.
  Overview(const Parts& parts, metrics::Shard shard);

  [[nodiscard]] std::vector<frontend::Check> readiness() const override;
  [[nodiscard]] std::string metrics(metrics::Exposition form) override;
  [[nodiscard]] frontend::StatusReport status() override;

 private:
  // Longer than any turn of a healthy worker, shorter than the timeout of a probe.
  static constexpr Nanos kPatience{std::chrono::milliseconds{250}};

  [[nodiscard]] WorkerReport ask_workers();
  [[nodiscard]] std::optional<frontend::RulesFileStatus> rules_file() const;
  [[nodiscard]] store::LocalStoreStatus look_at_table() const;

  Parts parts_;
  std::mutex mutex_;  // guards the following
  Gauges gauges_;
  std::vector<WorkerReport> last_;  // of each worker
};

}  // namespace sluice::app
