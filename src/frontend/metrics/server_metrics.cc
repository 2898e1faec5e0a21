#include "frontend/metrics/server_metrics.h"

#include <array>

namespace sluice::frontend {

std::span<const Metric* const> server_metrics() noexcept {
  static constexpr std::array kAll{&kDecisions,
                                   &kHits,
                                   &kRejections,
                                   &kDecisionDuration,
                                   &kConnectionsRejected,
                                   &kEvictedConnections,
                                   &kQueued,
                                   &kRequests,
                                   &kRequestDuration,
                                   &kInFlight,
                                   &kConnections,
                                   &kHeadersDropped,
                                   &kRequestBodyBytes,
                                   &kResponseBodyBytes,
                                   &kLogLines,
                                   &kUpstreamRequests,
                                   &kUpstreamDuration,
                                   &kUpstreamRetries,
                                   &kUpstreamConnections,
                                   &kUpstreamHealthy,
                                   &kStoreOperations,
                                   &kTableKeys,
                                   &kTableEvictions,
                                   &kTableFill,
                                   &kTableSharedFill,
                                   &kTableFull,
                                   &kTableForgiven,
                                   &kTableRefundsLost,
                                   &kBlocks,
                                   &kBlocksDropped,
                                   &kBlockRejectionsLost,
                                   &kBlockNamesDisplaced,
                                   &kChargesUnrefundable,
                                   &kAuthFailuresForgotten,
                                   &kDynamicLimitsSkipped,
                                   &kShadowChecksSkipped,
                                   &kReloads,
                                   &kLastReload,
                                   &kRulesFetches,
                                   &kRulesInSync};
  return kAll;
}

void declare_server_metrics(metrics::Registry& registry) {
  for (const Metric* metric : server_metrics()) registry.declare(*metric);
}

}  // namespace sluice::frontend
