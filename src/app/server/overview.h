// The server as operators see it: asks the workers, sums up, keeps the gauges true.
//
// Workers are asked when somebody looks, and answer between two turns of their loops. One that does
// not within kPatience is shown as it was the last time. One thread: that of the admin listener;
// everything that it refers to outlives it.
#pragma once

#include "app/server/gauges.h"
#include "app/server/rule_feed.h"
#include "app/server/server_facts.h"
#include "app/server/server_worker.h"
#include "app/server/worker_report.h"
#include "embed/engine_state.h"
#include "frontend/admin/pages.h"
#include "metrics/registry.h"
#include <sluice/clock.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::app {

class Overview final : public admin::ServerView {
 public:
  struct Parts {
    const ServerFacts& facts;
    embed::EngineState& state;
    metrics::Registry& registry;
    const std::vector<std::unique_ptr<ServerWorker>>& workers;
    const RuleFeed* feed;  // null: rules are in the configuration itself
    const Clock& clock;
  };
  // `shard` is one that no worker counts with.
  Overview(const Parts& parts, metrics::Shard shard);

  [[nodiscard]] std::vector<admin::Check> readiness() const override;
  [[nodiscard]] std::string metrics(metrics::Exposition form) override;
  [[nodiscard]] admin::StatusReport status() override;

 private:
  // Longer than any turn of a healthy worker, shorter than the patience of a probe.
  static constexpr Nanos kPatience{std::chrono::milliseconds{250}};

  [[nodiscard]] WorkerReport ask_workers();
  [[nodiscard]] std::optional<admin::RulesFileStatus> rules_file() const;
  [[nodiscard]] store::LocalStoreStatus look_at_table() const;

  Parts parts_;
  Gauges gauges_;
  std::vector<WorkerReport> last_;  // of each worker
};

}  // namespace sluice::app
