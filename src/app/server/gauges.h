// Metrics that are read on demand instead of counted as things happen. One thread.
#pragma once

#include "app/server/worker_report.h"
#include "metrics/registry.h"
#include "rules/sync/sync_status.h"
#include "store/local/local_store.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace sluice::app {

class Gauges {
 public:
  // No worker counts with `shard`.
  Gauges(metrics::Registry& registry, metrics::Shard shard);

  void show(const WorkerReport& total, const store::LocalStoreStatus& table, std::size_t workers);
  void show(const rules::SyncStatus& rules);

 private:
  // A count that another part keeps, and that only grows.
  struct Followed {
    metrics::Counter counter;
    std::uint64_t shown = 0;

    void follow(metrics::Shard shard, std::uint64_t value) noexcept;
  };
  struct OfFrontend {
    metrics::Gauge connections;
    Followed connections_rejected;
    Followed evicted;
    metrics::Gauge in_flight;
    Followed headers_dropped;
  };
  struct OfUpstream {
    metrics::Gauge connections;
    metrics::Gauge healthy;
  };
  void show(const WorkerReport::OfFrontend& one);
  void show(const std::vector<frontend::UpstreamStatus>& upstreams, std::size_t workers);
  void show_table(const store::LocalStoreStatus& table);

  metrics::Registry& registry_;
  const metrics::Shard shard_;
  metrics::Gauge queued_;
  metrics::Gauge keys_;
  Followed evictions_;
  metrics::Gauge table_fill_;
  metrics::Gauge table_shared_fill_;
  std::array<Followed, 3> table_full_;
  Followed table_forgiven_;
  Followed table_refunds_lost_;
  Followed blocks_;
  Followed blocks_dropped_;
  Followed block_rejections_lost_;
  Followed block_names_displaced_;
  Followed charges_unrefundable_;
  Followed auth_failures_forgotten_;
  Followed dynamic_limits_skipped_;
  Followed shadow_checks_skipped_;
  std::array<Followed, 3> log_lines_;
  std::array<Followed, 4> store_calls_;
  std::array<Followed, 4> rule_reads_;
  metrics::Gauge rules_in_sync_;
  bool has_rules_ = false;
  std::map<std::string, OfFrontend, std::less<>> frontends_;
  std::map<std::string, OfUpstream> upstreams_;  // removed ones show 0
};

}  // namespace sluice::app
