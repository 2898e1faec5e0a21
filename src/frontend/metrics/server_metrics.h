// The table of all metrics of a server, in one place so that the documentation can be compared with
// it.
#pragma once

#include "metrics/registry.h"

#include <span>

namespace sluice::frontend {

using metrics::Kind;
using metrics::Metric;

// ---- decisions --------------------------------------------------------------------------------

// The configuration bounds rules to ten thousand, with five words each.
inline constexpr Metric kDecisions{
    .name = "sluice_decisions_total",
    .help = "Decisions of rules; rule is empty for requests that match no rule.",
    .labels = {"domain", "rule", "decision"},
    .series_max = 60'000};
// The cost of requests, allowed or not: one unit each, unless the rule says otherwise.
inline constexpr Metric kHits{
    .name = "sluice_hits_total",
    .help = "Units that requests cost under a rule, rejected requests included.",
    .labels = {"domain", "rule"},
    .series_max = 12'000};
inline constexpr Metric kRejections{.name = "sluice_rejections_total",
                                    .help = "Rejected requests, by reason.",
                                    .labels = {"reason"}};
inline constexpr Metric kDecisionDuration{.name = "sluice_decision_duration_seconds",
                                          .kind = Kind::histogram,
                                          .help = "How long decisions took, of one in 64."};
inline constexpr Metric kConnectionsRejected{
    .name = "sluice_connections_rejected_total",
    .help = "Connections that were rejected: too many, no descriptor left, not a proxy.",
    .labels = {"listener"}};
inline constexpr Metric kEvictedConnections{
    .name = "sluice_connections_evicted_total",
    .help = "Idle connections closed to make room: too many connections, or no descriptor left.",
    .labels = {"listener"}};
inline constexpr Metric kQueued{.name = "sluice_requests_queued",
                                .kind = Kind::gauge,
                                .help = "Requests in the queues of rules."};

// ---- requests ---------------------------------------------------------------------------------

inline constexpr Metric kRequests{.name = "sluice_requests_total",
                                  .help = "Requests, by status class of the response.",
                                  .labels = {"listener", "code"}};
inline constexpr Metric kRequestDuration{
    .name = "sluice_request_duration_seconds",
    .kind = Kind::histogram,
    .help = "From the first byte of a request to the last byte of its response.",
    .labels = {"listener"}};
inline constexpr Metric kInFlight{.name = "sluice_requests_in_flight",
                                  .kind = Kind::gauge,
                                  .help = "Requests in flight.",
                                  .labels = {"listener"}};
inline constexpr Metric kConnections{.name = "sluice_connections",
                                     .kind = Kind::gauge,
                                     .help = "Open client connections.",
                                     .labels = {"listener"}};
inline constexpr Metric kHeadersDropped{
    .name = "sluice_request_headers_dropped_total",
    .help =
        "Request headers removed: only a trusted proxy may send them, or their names imitate a "
        "header that identifies clients.",
    .labels = {"listener"}};
inline constexpr Metric kRequestBodyBytes{.name = "sluice_request_body_bytes_total",
                                          .help = "Bytes of request bodies from clients.",
                                          .labels = {"listener"}};
inline constexpr Metric kResponseBodyBytes{.name = "sluice_response_body_bytes_total",
                                           .help = "Bytes of response bodies to clients.",
                                           .labels = {"listener"}};
inline constexpr Metric kLogLines{
    .name = "sluice_access_log_lines_total",
    .help = "Lines of the access log: written, suppressed by sampling, dropped for want of room.",
    .labels = {"result"}};

// ---- upstreams --------------------------------------------------------------------------------

inline constexpr Metric kUpstreamRequests{
    .name = "sluice_upstream_requests_total",
    .help = "Requests forwarded, by status class of the response or by failure.",
    .labels = {"upstream", "result"}};
inline constexpr Metric kUpstreamDuration{
    .name = "sluice_upstream_duration_seconds",
    .kind = Kind::histogram,
    .help = "From forwarding a request to the first byte of the response.",
    .labels = {"upstream"}};
inline constexpr Metric kUpstreamRetries{.name = "sluice_upstream_retries_total",
                                         .help = "Requests forwarded again.",
                                         .labels = {"upstream"}};
inline constexpr Metric kUpstreamConnections{.name = "sluice_upstream_connections",
                                             .kind = Kind::gauge,
                                             .help = "Open connections to servers.",
                                             .labels = {"upstream"}};
inline constexpr Metric kUpstreamHealthy{.name = "sluice_upstream_servers_healthy",
                                         .kind = Kind::gauge,
                                         .help = "Servers that take requests.",
                                         .labels = {"upstream"}};

// ---- stores and configuration -----------------------------------------------------------------

inline constexpr Metric kStoreOperations{.name = "sluice_store_operations_total",
                                         .help = "Calls of the store, by result.",
                                         .labels = {"op", "result"}};
inline constexpr Metric kTableKeys{
    .name = "sluice_table_keys",
    .kind = Kind::gauge,
    .help = "Keys in the counter table; an estimate where there are many."};
inline constexpr Metric kTableEvictions{
    .name = "sluice_table_evictions_total",
    .help = "Keys evicted early because the counter table was full."};
inline constexpr Metric kTableFill{.name = "sluice_table_fill_ratio",
                                   .kind = Kind::gauge,
                                   .help = "Share of the counter table's slots in use, 0 to 1."};
inline constexpr Metric kTableSharedFill{
    .name = "sluice_table_shared_fill_ratio",
    .kind = Kind::gauge,
    .help = "Share in use of the cells that keys without a slot share, 0 to 1."};
inline constexpr Metric kTableFull{
    .name = "sluice_table_full_decisions_total",
    .help =
        "Decisions on keys that the counter table had no room for: approximated, allowed "
        "untracked, rejected.",
    .labels = {"result"}};
inline constexpr Metric kTableForgiven{
    .name = "sluice_table_forgiven_units_total",
    .help = "Usage that was forgotten because the counter table was full, in units of cost."};
inline constexpr Metric kTableRefundsLost{
    .name = "sluice_table_refund_units_lost_total",
    .help = "Refunds that a full counter table did not give back, in units of cost."};
inline constexpr Metric kBlocks{.name = "sluice_blocks_total", .help = "Blocks that began."};
inline constexpr Metric kBlocksDropped{
    .name = "sluice_blocks_dropped_total",
    .help = "Blocks that did not begin because the counter table was full."};
inline constexpr Metric kBlockRejectionsLost{
    .name = "sluice_block_rejections_lost_total",
    .help = "Rejections that did not count towards a block because the counter table was full."};
inline constexpr Metric kBlockNamesDisplaced{
    .name = "sluice_block_names_displaced_total",
    .help = "Blocks that hold but left the list of blocks, which was full."};
inline constexpr Metric kChargesUnrefundable{
    .name = "sluice_charges_unrefundable_total",
    .help =
        "Charges for a cost that was raised later and can no longer be refunded: it was raised too "
        "often."};
inline constexpr Metric kAuthFailuresForgotten{
    .name = "sluice_auth_failures_forgotten_total",
    .help =
        "Addresses whose failed tokens were forgotten early because too many addresses failed."};
inline constexpr Metric kDynamicLimitsSkipped{
    .name = "sluice_dynamic_limits_skipped_total",
    .help = "Amounts of `from` that the table had no room for; the written amount was used."};
inline constexpr Metric kShadowChecksSkipped{
    .name = "sluice_shadow_checks_skipped_total",
    .help = "Shadow rules not checked: the enforced rules took all room of a request."};
inline constexpr Metric kReloads{.name = "sluice_config_reloads_total",
                                 .help = "Times that the configuration was read again.",
                                 .labels = {"result"}};
inline constexpr Metric kLastReload{
    .name = "sluice_config_last_reload_success_timestamp_seconds",
    .kind = Kind::gauge,
    .help = "When the configuration in force was read, in seconds since 1970."};

inline constexpr Metric kRulesFetches{
    .name = "sluice_rules_fetches_total",
    .help = "Fetches of the rules file, by result; none without such a file.",
    .labels = {"result"}};
inline constexpr Metric kRulesInSync{
    .name = "sluice_rules_in_sync",
    .kind = Kind::gauge,
    .help = "1 while the rules in force are those of their file, 0 while they are older ones."};

[[nodiscard]] std::span<const Metric* const> server_metrics() noexcept;

// Declares all metrics, so that a page names them before they are first counted.
void declare_server_metrics(metrics::Registry& registry);

}  // namespace sluice::frontend
