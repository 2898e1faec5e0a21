#include "app/server/worker_report.h"

#include <algorithm>
#include <utility>

namespace sluice::app {
namespace {

void add(const admin::ServerStatus& server, admin::UpstreamStatus& to) {
  auto found = std::ranges::find(to.servers, server.address, &admin::ServerStatus::address);
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

void add(const admin::UpstreamStatus& group, std::vector<admin::UpstreamStatus>& to) {
  auto found = std::ranges::find(to, group.name, &admin::UpstreamStatus::name);
  if (found == to.end()) found = to.insert(to.end(), {.name = group.name, .servers = {}});
  for (const admin::ServerStatus& server : group.servers) add(server, *found);
}

}  // namespace

WorkerReport total_of(std::span<const WorkerReport> reports) {
  WorkerReport total;
  for (const WorkerReport& one : reports) {
    total.connections += one.connections;
    total.connections_rejected += one.connections_rejected;
    total.evicted += one.evicted;
    total.spares += one.spares;
    total.in_flight += one.in_flight;
    total.queued += one.queued;
    total.headers_dropped += one.headers_dropped;
    total.log_written += one.log_written;
    total.log_suppressed += one.log_suppressed;
    total.log_dropped += one.log_dropped;
    total.blocks += one.blocks;
    total.blocks_dropped += one.blocks_dropped;
    total.block_names_displaced += one.block_names_displaced;
    total.charges_unrefundable += one.charges_unrefundable;
    total.auth_failures_forgotten += one.auth_failures_forgotten;
    total.dynamic_limits_skipped += one.dynamic_limits_skipped;
    total.shadow_checks_skipped += one.shadow_checks_skipped;
    total.store.decides += one.store.decides;
    total.store.charges += one.store.charges;
    total.store.refunds += one.store.refunds;
    total.store.renewals += one.store.renewals;
    for (const admin::UpstreamStatus& group : one.upstreams) add(group, total.upstreams);
  }
  return total;
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
