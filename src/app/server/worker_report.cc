#include "app/server/worker_report.h"

#include <algorithm>
#include <utility>

namespace sluice::app {
namespace {

void add(const frontend::ServerStatus& server, frontend::UpstreamStatus& to) {
  auto found = std::ranges::find(to.servers, server.address, &frontend::ServerStatus::address);
  if (found == to.servers.end()) {
    to.servers.push_back(server);
    return;
  }
  found->ejected_by += server.ejected_by;
  found->addresses = std::max(found->addresses, server.addresses);
  found->addresses_ejected = std::min(found->addresses_ejected, server.addresses_ejected);
  found->in_use += server.in_use;
  found->idle += server.idle;
  found->failures += server.failures;
}

void add(const frontend::UpstreamStatus& group, std::vector<frontend::UpstreamStatus>& to) {
  auto found = std::ranges::find(to, group.name, &frontend::UpstreamStatus::name);
  if (found == to.end()) found = to.insert(to.end(), {.name = group.name, .servers = {}});
  for (const frontend::ServerStatus& server : group.servers) add(server, *found);
}

void add(const frontend::FrontendReport& one, frontend::FrontendReport& to) {
  to.connections += one.connections;
  to.connections_rejected += one.connections_rejected;
  to.evicted += one.evicted;
  to.spares += one.spares;
  to.in_flight += one.in_flight;
  to.queued += one.queued;
  to.headers_dropped += one.headers_dropped;
  for (const frontend::UpstreamStatus& group : one.upstreams) add(group, to.upstreams);
}

void add(const WorkerReport::OfFrontend& one, std::vector<WorkerReport::OfFrontend>& to) {
  auto found = std::ranges::find(to, one.name, &WorkerReport::OfFrontend::name);
  if (found == to.end()) found = to.insert(to.end(), {.name = one.name, .report = {}});
  add(one.report, found->report);
}

}  // namespace

WorkerReport total_of(std::span<const WorkerReport> reports) {
  WorkerReport total;
  for (const WorkerReport& one : reports) {
    for (const WorkerReport::OfFrontend& frontend : one.frontends) add(frontend, total.frontends);
    total.log_written += one.log_written;
    total.log_suppressed += one.log_suppressed;
    total.log_dropped += one.log_dropped;
    total.blocks += one.blocks;
    total.blocks_dropped += one.blocks_dropped;
    total.block_rejections_lost += one.block_rejections_lost;
    total.block_names_displaced += one.block_names_displaced;
    total.charges_unrefundable += one.charges_unrefundable;
    total.auth_failures_forgotten += one.auth_failures_forgotten;
    total.dynamic_limits_skipped += one.dynamic_limits_skipped;
    total.shadow_checks_skipped += one.shadow_checks_skipped;
    total.store.decides += one.store.decides;
    total.store.charges += one.store.charges;
    total.store.refunds += one.store.refunds;
    total.store.renewals += one.store.renewals;
  }
  return total;
}

frontend::FrontendReport all_frontends_of(const WorkerReport& report) {
  frontend::FrontendReport all;
  for (const WorkerReport::OfFrontend& one : report.frontends) add(one.report, all);
  return all;
}

void WorkerPoll::answer(std::size_t worker, WorkerReport report) {
  const std::lock_guard guard{mutex_};
  if (!answers_[worker]) --missing_;
  answers_[worker] = std::move(report);
  if (missing_ == 0) complete_.notify_all();
}

std::vector<std::optional<WorkerReport>> WorkerPoll::wait(Nanos at_most) {
  std::unique_lock lock{mutex_};
  complete_.wait_for(lock, at_most, [this] { return missing_ == 0; });
  return answers_;
}

}  // namespace sluice::app
