#include "app/server/worker_report.h"

#include "app/server/gauges.h"
#include "frontend/metrics/server_metrics.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::app {
namespace {

using namespace std::chrono_literals;

frontend::UpstreamStatus app(std::size_t ejected_by, std::uint64_t in_use,
                             std::size_t addresses_ejected = 0) {
  return {.name = "app",
          .servers = {{.address = "a:1",
                       .ejected_by = ejected_by,
                       .addresses = 3,
                       .addresses_ejected = addresses_ejected,
                       .in_use = in_use,
                       .idle = 1,
                       .failures = 2}}};
}

double shown(const metrics::Registry& registry, const metrics::Metric& metric) {
  const metrics::FamilyReading family = registry.read(metric);
  double sum = 0;
  for (const metrics::SeriesReading& series : family.series) sum += series.value;
  return sum;
}

// Of one front end.
WorkerReport of_gateway(frontend::FrontendReport report) {
  WorkerReport of_worker;
  of_worker.frontends.push_back({.name = "gateway", .report = std::move(report)});
  return of_worker;
}

TEST(WorkerReport, AddsUp) {
  std::vector<WorkerReport> reports{of_gateway({.connections = 1,
                                                .connections_rejected = 5,
                                                .evicted = 8,
                                                .spares = 9,
                                                .in_flight = 2,
                                                .queued = 3,
                                                .headers_dropped = 2,
                                                .upstreams = {app(1, 5)}}),
                                    of_gateway({.connections = 10,
                                                .connections_rejected = 50,
                                                .evicted = 80,
                                                .spares = 90,
                                                .in_flight = 20,
                                                .queued = 30,
                                                .headers_dropped = 20,
                                                .upstreams = {app(0, 50)}})};
  reports[0].log_written = 8;
  reports[1].log_written = 80;
  reports[0].log_suppressed = 9;
  reports[1].log_suppressed = 90;
  reports[0].log_dropped = 5;
  reports[1].log_dropped = 50;
  reports[0].store = {.decides = 1, .charges = 2, .refunds = 3, .renewals = 4};
  reports[1].store = {.decides = 10, .charges = 20, .refunds = 30, .renewals = 40};
  reports[0].blocks = 4;
  reports[1].blocks = 40;
  reports[0].dynamic_limits_skipped = 7;
  reports[1].dynamic_limits_skipped = 70;
  reports[0].shadow_checks_skipped = 6;
  reports[1].shadow_checks_skipped = 60;
  reports[0].blocks_dropped = 1;
  reports[1].blocks_dropped = 10;
  reports[0].block_rejections_lost = 5;
  reports[1].block_rejections_lost = 50;
  reports[0].block_names_displaced = 2;
  reports[1].block_names_displaced = 20;
  reports[0].store.charges_unrefundable = 3;
  reports[1].store.charges_unrefundable = 30;
  reports[0].auth_failures_forgotten = 4;
  reports[1].auth_failures_forgotten = 40;
  const WorkerReport total = total_of(reports);
  EXPECT_EQ(total.log_written, 88U);
  EXPECT_EQ(total.log_suppressed, 99U);
  EXPECT_EQ(total.log_dropped, 55U);
  EXPECT_EQ(total.store.decides, 11U);
  EXPECT_EQ(total.store.charges, 22U);
  EXPECT_EQ(total.store.refunds, 33U);
  EXPECT_EQ(total.store.renewals, 44U);
  EXPECT_EQ(total.blocks, 44U);
  EXPECT_EQ(total.blocks_dropped, 11U);
  EXPECT_EQ(total.block_rejections_lost, 55U);
  EXPECT_EQ(total.block_names_displaced, 22U);
  EXPECT_EQ(total.store.charges_unrefundable, 33U);
  EXPECT_EQ(total.auth_failures_forgotten, 44U);
  EXPECT_EQ(total.dynamic_limits_skipped, 77U);
  EXPECT_EQ(total.shadow_checks_skipped, 66U);
  ASSERT_EQ(total.frontends.size(), 1U);
  const frontend::FrontendReport& gateway = total.frontends[0].report;
  EXPECT_EQ(gateway.connections, 11U);
  EXPECT_EQ(gateway.in_flight, 22U);
  EXPECT_EQ(gateway.queued, 33U);
  EXPECT_EQ(gateway.headers_dropped, 22U);
  EXPECT_EQ(gateway.connections_rejected, 55U);
  EXPECT_EQ(gateway.evicted, 88U);
  EXPECT_EQ(gateway.spares, 99U);
  ASSERT_EQ(gateway.upstreams.size(), 1U);
  const frontend::ServerStatus& server = gateway.upstreams[0].servers.at(0);
  EXPECT_EQ(server.in_use, 55U);
  EXPECT_EQ(server.failures, 4U);
  EXPECT_TRUE(frontend::is_healthy(server, 2)) << "one worker still trusts it";
}

// Each by itself, for metrics; all together, for the status.
TEST(WorkerReport, AddsUpEachFrontEndAndAllOfThem) {
  std::vector<WorkerReport> reports(2, of_gateway({.connections = 1}));
  for (WorkerReport& one : reports) {
    one.frontends.push_back({.name = "other", .report = {.connections = 10, .in_flight = 2}});
  }
  const WorkerReport total = total_of(reports);
  ASSERT_EQ(total.frontends.size(), 2U);
  EXPECT_EQ(total.frontends[0].report.connections, 2U);
  EXPECT_EQ(total.frontends[1].name, "other");
  EXPECT_EQ(total.frontends[1].report.connections, 20U);
  EXPECT_EQ(all_frontends_of(total).connections, 22U);
  EXPECT_EQ(all_frontends_of(total).in_flight, 4U);
}

// As with servers: what one worker still tries is not left alone.
TEST(WorkerReport, CountsAddressesThatAllWorkersLeaveAlone) {
  const std::vector<WorkerReport> reports{of_gateway({.upstreams = {app(1, 0, 3)}}),
                                          of_gateway({.upstreams = {app(0, 0, 1)}})};
  const frontend::FrontendReport total = all_frontends_of(total_of(reports));
  const frontend::ServerStatus& server = total.upstreams.at(0).servers.at(0);
  EXPECT_EQ(server.addresses, 3U);
  EXPECT_EQ(server.addresses_ejected, 1U);
}

// In the middle of a reload one worker has the new upstreams and one the old.
TEST(WorkerReport, AddsUpWhatIsNotTheSame) {
  std::vector<WorkerReport> reports{of_gateway({.upstreams = {app(0, 1)}}),
                                    of_gateway({.upstreams = {app(0, 2)}})};
  std::vector<frontend::UpstreamStatus>& second = reports[1].frontends[0].report.upstreams;
  second[0].servers[0].address = "b:1";
  second.push_back({.name = "new", .servers = {}});
  const frontend::FrontendReport total = all_frontends_of(total_of(reports));
  ASSERT_EQ(total.upstreams.size(), 2U);
  EXPECT_EQ(total.upstreams[0].servers.size(), 2U);
}

TEST(WorkerPoll, WaitsForEverybody) {
  WorkerPoll poll{2};
  std::jthread other{[&] { poll.answer(1, {.blocks = 7}); }};
  poll.answer(0, {.blocks = 5});
  const auto answers = poll.wait(1h);
  EXPECT_EQ(answers.at(0)->blocks, 5U);
  EXPECT_EQ(answers.at(1)->blocks, 7U);
}

TEST(WorkerPoll, DoesNotWaitForTheDead) {
  WorkerPoll poll{2};
  poll.answer(1, {.blocks = 7});
  const auto answers = poll.wait(1ms);
  EXPECT_FALSE(answers.at(0));
  EXPECT_TRUE(answers.at(1));
}

TEST(Gauges, ShowWhatIsAndFollowWhatGrows) {
  metrics::Registry registry{2};
  Gauges gauges{registry, 1};
  WorkerReport report = of_gateway({.connections = 5,
                                    .connections_rejected = 8,
                                    .evicted = 7,
                                    .headers_dropped = 6,
                                    .upstreams = {app(0, 3)}});
  report.log_written = 10;
  report.blocks_dropped = 11;
  report.block_rejections_lost = 16;
  report.block_names_displaced = 12;
  report.store.charges_unrefundable = 13;
  report.auth_failures_forgotten = 14;
  report.dynamic_limits_skipped = 4;
  gauges.show(report,
              {.counters = {.evicted = 2,
                            .approximated = 3,
                            .untracked = 4,
                            .rejected_for_room = 5,
                            .refunds_lost = 15},
               .slots = 12,
               .slots_used = 9,
               .cells = 8,
               .cells_used = 2},
              1);
  EXPECT_EQ(shown(registry, frontend::kConnections), 5);
  EXPECT_EQ(shown(registry, frontend::kConnectionsRejected), 8);
  EXPECT_EQ(shown(registry, frontend::kEvictedConnections), 7);
  EXPECT_EQ(shown(registry, frontend::kHeadersDropped), 6);
  EXPECT_EQ(shown(registry, frontend::kLogLines), 10);
  EXPECT_EQ(shown(registry, frontend::kDynamicLimitsSkipped), 4);
  EXPECT_EQ(shown(registry, frontend::kBlocksDropped), 11);
  EXPECT_EQ(shown(registry, frontend::kBlockRejectionsLost), 16);
  EXPECT_EQ(shown(registry, frontend::kBlockNamesDisplaced), 12);
  EXPECT_EQ(shown(registry, frontend::kChargesUnrefundable), 13);
  EXPECT_EQ(shown(registry, frontend::kAuthFailuresForgotten), 14);
  EXPECT_EQ(shown(registry, frontend::kTableRefundsLost), 15);
  EXPECT_EQ(shown(registry, frontend::kTableKeys), 9);
  EXPECT_EQ(shown(registry, frontend::kTableFill), 0.75);
  EXPECT_EQ(shown(registry, frontend::kTableSharedFill), 0.25);
  EXPECT_EQ(shown(registry, frontend::kTableFull), 3 + 4 + 5);
  EXPECT_EQ(shown(registry, frontend::kUpstreamConnections), 4) << "those that are idle included";
  EXPECT_EQ(shown(registry, frontend::kUpstreamHealthy), 1);
  report = of_gateway({.connections = 2, .upstreams = {app(1, 3)}});
  report.log_written = 12;
  gauges.show(report, {.counters = {.evicted = 3}, .slots_used = 8}, 1);
  EXPECT_EQ(shown(registry, frontend::kConnections), 2);
  EXPECT_EQ(shown(registry, frontend::kLogLines), 12);
  EXPECT_EQ(shown(registry, frontend::kTableEvictions), 3);
  EXPECT_EQ(shown(registry, frontend::kUpstreamHealthy), 0);
  // An upstream that is gone has nothing left to show.
  gauges.show({}, {}, 1);
  EXPECT_EQ(shown(registry, frontend::kUpstreamConnections), 0);
  EXPECT_EQ(shown(registry, frontend::kLogLines), 12) << "counters never go back";
}

}  // namespace
}  // namespace sluice::app
