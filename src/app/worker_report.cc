#include "app/worker_report.h"

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
  found->left_alone_by += server.left_alone_by;
  found->addresses = std::max(found->addresses, server.addresses);
  found->addresses_left_alone = std::min(found->addresses_left_alone, server.addresses_left_alone);
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
    total.turned_away += one.turned_away;
    total.evicted += one.evicted;
    total.spares += one.spares;
    total.in_flight += one.in_flight;
    total.held += one.held;
    total.log_written += one.log_written;
    total.log_suppressed += one.log_suppressed;
    total.log_dropped += one.log_dropped;
    total.blocks += one.blocks;
    total.amounts_left_out += one.amounts_left_out;
    total.shadows_left_out += one.shadows_left_out;
    total.store.decides += one.store.decides;
    total.store.charges += one.store.charges;
    total.store.refunds += one.store.refunds;
    total.store.renewals += one.store.renewals;
    for (const admin::UpstreamStatus& group : one.upstreams) add(group, total.upstreams);
  }
  return total;
}

void Gathering::answer(std::size_t worker, WorkerReport report) {
  const std::lock_guard guard{mutex_};
  if (!answers_[worker]) --missing_;
  answers_[worker] = std::move(report);
  if (missing_ == 0) complete_.notify_all();
}

std::vector<std::optional<WorkerReport>> Gathering::wait(Nanos at_most) {
  std::unique_lock lock{mutex_};
  complete_.wait_for(lock, at_most, [this] { return missing_ == 0; });
  return answers_;
}

}  // namespace sluice::app
