// What a server counts: the table of all its metrics, in one place so that documentation can be
// compared with it.
#pragma once

#include "metrics/registry.h"

#include <span>

namespace sluice::frontend {

using metrics::Kind;
using metrics::Metric;

// ---- decisions --------------------------------------------------------------------------------

// Rules are bounded by configuration to ten thousand, of five words each.
inline constexpr Metric kDecisions{
    .name = "sluice_decisions_total",
    .help = "What rules said about requests; policy is the name of the rule, empty for none.",
    .labels = {"domain", "policy", "decision"},
    .series_max = 60'000};
// What requests cost, allowed or not: one unit each, unless the rule says otherwise.
inline constexpr Metric kHits{.name = "sluice_hits_total",
                              .help = "Units that rules were asked for, refused ones included.",
                              .labels = {"domain", "policy"},
                              .series_max = 12'000};
inline constexpr Metric kRefusals{.name = "sluice_refusals_total",
                                  .help = "Requests that were refused, by reason.",
                                  .labels = {"reason"}};
inline constexpr Metric kDecisionDuration{.name = "sluice_decision_duration_seconds",
                                          .kind = Kind::histogram,
                                          .help = "How long decisions took, of one in 64."};
inline constexpr Metric kTurnedAway{
    .name = "sluice_connections_turned_away_total",
    .help = "Connections that were closed at once: too many, no descriptor left, not a proxy.",
    .labels = {"listener"}};
inline constexpr Metric kEvictedConnections{
    .name = "sluice_connections_evicted_total",
    .help = "Idle connections closed to make room: too many connections, or no descriptor left.",
    .labels = {"listener"}};
inline constexpr Metric kHeld{.name = "sluice_requests_held",
                              .kind = Kind::gauge,
                              .help = "Requests that wait in the queue of a rule."};

// ---- requests ---------------------------------------------------------------------------------

inline constexpr Metric kRequests{.name = "sluice_requests_total",
                                  .help = "Requests, by class of the status of the answer.",
                                  .labels = {"listener", "code"}};
inline constexpr Metric kRequestDuration{
    .name = "sluice_request_duration_seconds",
    .kind = Kind::histogram,
    .help = "From the first byte of a request to the last one of its answer.",
    .labels = {"listener"}};
inline constexpr Metric kInFlight{.name = "sluice_requests_in_flight",
                                  .kind = Kind::gauge,
                                  .help = "Requests that are being worked on.",
                                  .labels = {"listener"}};
inline constexpr Metric kConnections{.name = "sluice_connections",
                                     .kind = Kind::gauge,
                                     .help = "Connections of clients that are open.",
                                     .labels = {"listener"}};
inline constexpr Metric kReceived{.name = "sluice_received_bytes_total",
                                  .help = "Bytes of bodies that clients sent.",
                                  .labels = {"listener"}};
inline constexpr Metric kSent{.name = "sluice_sent_bytes_total",
                              .help = "Bytes of bodies that were sent to clients.",
                              .labels = {"listener"}};
inline constexpr Metric kLogLines{
    .name = "sluice_access_log_lines_total",
    .help = "Lines of the access log: written, suppressed by sampling, dropped for want of room.",
    .labels = {"result"}};

// ---- upstreams --------------------------------------------------------------------------------

inline constexpr Metric kUpstreamRequests{
    .name = "sluice_upstream_requests_total",
    .help = "Requests that were passed on, by class of the status or by what went wrong.",
    .labels = {"upstream", "result"}};
inline constexpr Metric kUpstreamDuration{
    .name = "sluice_upstream_duration_seconds",
    .kind = Kind::histogram,
    .help = "From passing a request on to the first byte of the answer.",
    .labels = {"upstream"}};
inline constexpr Metric kUpstreamRetries{.name = "sluice_upstream_retries_total",
                                         .help = "Requests that were passed on once more.",
                                         .labels = {"upstream"}};
inline constexpr Metric kUpstreamConnections{.name = "sluice_upstream_connections",
                                             .kind = Kind::gauge,
                                             .help = "Connections to servers that are open.",
                                             .labels = {"upstream"}};
inline constexpr Metric kUpstreamHealthy{.name = "sluice_upstream_servers_healthy",
                                         .kind = Kind::gauge,
                                         .help = "Servers that take requests.",
                                         .labels = {"upstream"}};

// ---- stores and configuration -----------------------------------------------------------------

inline constexpr Metric kStoreOperations{.name = "sluice_store_operations_total",
                                         .help = "Calls of the store, by what came of them.",
                                         .labels = {"op", "result"}};
inline constexpr Metric kKeys{.name = "sluice_keys",
                              .kind = Kind::gauge,
                              .help = "Keys with a count, if many about so many."};
inline constexpr Metric kEvictions{
    .name = "sluice_evictions_total",
    .help = "Counts that were forgotten early because the table was full."};
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
inline constexpr Metric kBlocks{.name = "sluice_blocks_total", .help = "Blocks that began."};
inline constexpr Metric kAmountsLeftOut{
    .name = "sluice_amounts_left_out_total",
    .help = "Amounts of `from` that the table had no room for: the written one was used."};
inline constexpr Metric kShadowsLeftOut{
    .name = "sluice_shadows_left_out_total",
    .help = "Shadow rules not looked at: the enforced ones took all room of a request."};
inline constexpr Metric kReloads{.name = "sluice_config_reloads_total",
                                 .help = "Times that the configuration was read again.",
                                 .labels = {"result"}};
inline constexpr Metric kLastReload{
    .name = "sluice_config_last_reload_success_timestamp_seconds",
    .kind = Kind::gauge,
    .help = "When the configuration in force was read, in seconds since 1970."};

inline constexpr Metric kRuleReads{
    .name = "sluice_rules_reads_total",
    .help = "Times that the file of rules was read, by what came of it; without such a file none.",
    .labels = {"result"}};
inline constexpr Metric kRulesInSync{
    .name = "sluice_rules_in_sync",
    .kind = Kind::gauge,
    .help = "1 while the rules in force are those of their file, 0 while they are older ones."};

[[nodiscard]] std::span<const Metric* const> server_metrics() noexcept;

// Makes all of them known, so that a page names them before they are first counted.
void declare_server_metrics(metrics::Registry& registry);

}  // namespace sluice::frontend
