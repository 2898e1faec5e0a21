#include "app/server/gauges.h"

#include "frontend/metrics/server_metrics.h"

#include <algorithm>

namespace sluice::app {
namespace {

double ratio_of(std::size_t part, std::size_t whole) noexcept {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

Gauges::Gauges(metrics::Registry& registry, metrics::Shard shard)
    : registry_(registry),
      shard_(shard),
      queued_(registry.gauge(frontend::kQueued)),
      keys_(registry.gauge(frontend::kTableKeys)),
      evictions_{registry.counter(frontend::kTableEvictions)},
      table_fill_(registry.gauge(frontend::kTableFill)),
      table_shared_fill_(registry.gauge(frontend::kTableSharedFill)),
      table_forgiven_{registry.counter(frontend::kTableForgiven)},
      table_refunds_lost_{registry.counter(frontend::kTableRefundsLost)},
      blocks_{registry.counter(frontend::kBlocks)},
      blocks_dropped_{registry.counter(frontend::kBlocksDropped)},
      block_rejections_lost_{registry.counter(frontend::kBlockRejectionsLost)},
      block_names_displaced_{registry.counter(frontend::kBlockNamesDisplaced)},
      charges_unrefundable_{registry.counter(frontend::kChargesUnrefundable)},
      auth_failures_forgotten_{registry.counter(frontend::kAuthFailuresForgotten)},
      dynamic_limits_skipped_{registry.counter(frontend::kDynamicLimitsSkipped)},
      shadow_checks_skipped_{registry.counter(frontend::kShadowChecksSkipped)} {
  constexpr std::array kLogResults{"written", "suppressed", "dropped"};
  for (std::size_t i = 0; i < log_lines_.size(); ++i) {
    log_lines_[i].counter = registry.counter(frontend::kLogLines, {kLogResults[i]});
  }
  constexpr std::array kFullResults{"approximated", "allowed", "rejected"};
  for (std::size_t i = 0; i < table_full_.size(); ++i) {
    table_full_[i].counter = registry.counter(frontend::kTableFull, {kFullResults[i]});
  }
  constexpr std::array kStoreCalls{"decide", "charge", "refund", "renew"};
  for (std::size_t i = 0; i < store_calls_.size(); ++i) {
    store_calls_[i].counter = registry.counter(frontend::kStoreOperations, {kStoreCalls[i], "ok"});
  }
}

// Shows nothing without a file of rules.
void Gauges::show(const rules::SyncStatus& rules) {
  if (!has_rules_) {
    constexpr std::array kResults{"accepted", "rejected", "failed", "unchanged"};
    for (std::size_t i = 0; i < rule_reads_.size(); ++i) {
      rule_reads_[i].counter = registry_.counter(frontend::kRulesFetches, {kResults[i]});
    }
    rules_in_sync_ = registry_.gauge(frontend::kRulesInSync);
    has_rules_ = true;
  }
  rule_reads_[0].follow(shard_, rules.accepted);
  rule_reads_[1].follow(shard_, rules.rejected);
  rule_reads_[2].follow(shard_, rules.failed);
  rule_reads_[3].follow(shard_, rules.unchanged);
  rules_in_sync_.set(shard_, rules.error ? 0 : 1);
}

void Gauges::Followed::follow(metrics::Shard shard, std::uint64_t value) noexcept {
  if (value <= shown) return;
  counter.add(shard, value - shown);
  shown = value;
}

void Gauges::show(const WorkerReport& total, const store::LocalStoreStatus& table,
                  std::size_t workers) {
  for (const WorkerReport::OfFrontend& one : total.frontends) show(one);
  const frontend::FrontendReport all = all_frontends_of(total);
  queued_.set(shard_, static_cast<double>(all.queued));
  keys_.set(shard_, static_cast<double>(table.slots_used));
  show_table(table);
  blocks_.follow(shard_, total.blocks);
  blocks_dropped_.follow(shard_, total.blocks_dropped);
  block_rejections_lost_.follow(shard_, total.block_rejections_lost);
  block_names_displaced_.follow(shard_, total.block_names_displaced);
  charges_unrefundable_.follow(shard_, total.store.charges_unrefundable);
  auth_failures_forgotten_.follow(shard_, total.auth_failures_forgotten);
  dynamic_limits_skipped_.follow(shard_, total.dynamic_limits_skipped);
  shadow_checks_skipped_.follow(shard_, total.shadow_checks_skipped);
  log_lines_[0].follow(shard_, total.log_written);
  log_lines_[1].follow(shard_, total.log_suppressed);
  log_lines_[2].follow(shard_, total.log_dropped);
  store_calls_[0].follow(shard_, total.store.decides);
  store_calls_[1].follow(shard_, total.store.charges);
  store_calls_[2].follow(shard_, total.store.refunds);
  store_calls_[3].follow(shard_, total.store.renewals);
  show(all.upstreams, workers);
}

void Gauges::show(const WorkerReport::OfFrontend& one) {
  auto found = frontends_.find(one.name);
  if (found == frontends_.end()) {
    const std::string name{one.name};
    const OfFrontend made{
        .connections = registry_.gauge(frontend::kConnections, {name}),
        .connections_rejected = {registry_.counter(frontend::kConnectionsRejected, {name})},
        .evicted = {registry_.counter(frontend::kEvictedConnections, {name})},
        .in_flight = registry_.gauge(frontend::kInFlight, {name}),
        .headers_dropped = {registry_.counter(frontend::kHeadersDropped, {name})}};
    found = frontends_.emplace(name, made).first;
  }
  OfFrontend& gauges = found->second;
  gauges.connections.set(shard_, static_cast<double>(one.report.connections));
  gauges.connections_rejected.follow(shard_, one.report.connections_rejected);
  gauges.evicted.follow(shard_, one.report.evicted);
  gauges.in_flight.set(shard_, static_cast<double>(one.report.in_flight));
  gauges.headers_dropped.follow(shard_, one.report.headers_dropped);
}

void Gauges::show_table(const store::LocalStoreStatus& table) {
  evictions_.follow(shard_, table.counters.evicted);
  table_fill_.set(shard_, ratio_of(table.slots_used, table.slots));
  table_shared_fill_.set(shard_, ratio_of(table.cells_used, table.cells));
  table_full_[0].follow(shard_, table.counters.approximated);
  table_full_[1].follow(shard_, table.counters.untracked);
  table_full_[2].follow(shard_, table.counters.rejected_for_room);
  table_forgiven_.follow(shard_, table.counters.forgiven);
  table_refunds_lost_.follow(shard_, table.counters.refunds_lost);
}

void Gauges::show(const std::vector<frontend::UpstreamStatus>& upstreams, std::size_t workers) {
  for (const auto& [name, gauges] : upstreams_) {
    gauges.connections.set(shard_, 0);
    gauges.healthy.set(shard_, 0);
  }
  for (const frontend::UpstreamStatus& group : upstreams) {
    auto found = upstreams_.find(group.name);
    if (found == upstreams_.end()) {
      const OfUpstream made{registry_.gauge(frontend::kUpstreamConnections, {group.name}),
                            registry_.gauge(frontend::kUpstreamHealthy, {group.name})};
      found = upstreams_.emplace(group.name, made).first;
    }
    std::uint64_t connections = 0;
    std::uint64_t healthy = 0;
    for (const frontend::ServerStatus& server : group.servers) {
      connections += server.in_use + server.idle;
      healthy += frontend::is_healthy(server, workers) ? 1U : 0U;
    }
    found->second.connections.set(shard_, static_cast<double>(connections));
    found->second.healthy.set(shard_, static_cast<double>(healthy));
  }
}

}  // namespace sluice::app
