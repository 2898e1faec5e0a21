#include "frontend/server_metrics.h"

#include <array>

namespace sluice::frontend {

std::span<const Metric* const> server_metrics() noexcept {
  static constexpr std::array kAll{&kDecisions,
                                   &kHits,
                                   &kRefusals,
                                   &kDecisionDuration,
                                   &kTurnedAway,
                                   &kEvictedConnections,
                                   &kHeld,
                                   &kRequests,
                                   &kRequestDuration,
                                   &kInFlight,
                                   &kConnections,
                                   &kReceived,
                                   &kSent,
                                   &kLogLines,
                                   &kUpstreamRequests,
                                   &kUpstreamDuration,
                                   &kUpstreamRetries,
                                   &kUpstreamConnections,
                                   &kUpstreamHealthy,
                                   &kStoreOperations,
                                   &kKeys,
                                   &kEvictions,
                                   &kTableFill,
                                   &kTableSharedFill,
                                   &kTableFull,
                                   &kTableForgiven,
                                   &kBlocks,
                                   &kAmountsLeftOut,
                                   &kShadowsLeftOut,
                                   &kReloads,
                                   &kLastReload,
                                   &kRuleReads,
                                   &kRulesInSync};
  return kAll;
}

void declare_server_metrics(metrics::Registry& registry) {
  for (const Metric* metric : server_metrics()) registry.declare(*metric);
}

}  // namespace sluice::frontend
