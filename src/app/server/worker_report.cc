#include "app/server/worker_report.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace sluice::app {
namespace {

using store::StoreCounts;

// The fields that a total is the sum of.
constexpr std::array kServerSums{&frontend::ServerStatus::ejected_by,
                                 &frontend::ServerStatus::in_use, &frontend::ServerStatus::idle,
                                 &frontend::ServerStatus::failures};
constexpr std::array kFrontendSums{
    &frontend::FrontendReport::connections,    &frontend::FrontendReport::connections_rejected,
    &frontend::FrontendReport::evicted,        &frontend::FrontendReport::spares,
    &frontend::FrontendReport::in_flight,      &frontend::FrontendReport::queued,
    &frontend::FrontendReport::headers_dropped};
constexpr std::array kWorkerSums{&WorkerReport::log_written,
                                 &WorkerReport::log_suppressed,
                                 &WorkerReport::log_dropped,
                                 &WorkerReport::blocks,
                                 &WorkerReport::blocks_dropped,
                                 &WorkerReport::block_rejections_lost,
                                 &WorkerReport::block_names_displaced,
                                 &WorkerReport::auth_failures_forgotten,
                                 &WorkerReport::dynamic_limits_skipped,
                                 &WorkerReport::shadow_checks_skipped};
constexpr std::array kStoreSums{&StoreCounts::decides, &StoreCounts::charges,
                                &StoreCounts::refunds, &StoreCounts::renewals,
                                &StoreCounts::late,    &StoreCounts::charges_unrefundable};

// A new count has to be in one of these lists.
static_assert(sizeof(frontend::FrontendReport) ==
              kFrontendSums.size() * sizeof(std::uint64_t) +
                  sizeof(decltype(frontend::FrontendReport::upstreams)));
static_assert(sizeof(StoreCounts) == kStoreSums.size() * sizeof(std::uint64_t));
static_assert(sizeof(WorkerReport) == kWorkerSums.size() * sizeof(std::uint64_t) +
                                          sizeof(decltype(WorkerReport::frontends)) +
                                          sizeof(StoreCounts));

void add_sums(const auto& one, auto& to, const auto& fields) {
  for (const auto field : fields) to.*field += one.*field;
}

void add(const frontend::ServerStatus& server, frontend::UpstreamStatus& to) {
  auto found = std::ranges::find(to.servers, server.address, &frontend::ServerStatus::address);
  if (found == to.servers.end()) {
    to.servers.push_back(server);
    return;
  }
  add_sums(server, *found, kServerSums);
  found->addresses = std::max(found->addresses, server.addresses);
  found->addresses_ejected = std::min(found->addresses_ejected, server.addresses_ejected);
}

void add(const frontend::UpstreamStatus& group, std::vector<frontend::UpstreamStatus>& to) {
  auto found = std::ranges::find(to, group.name, &frontend::UpstreamStatus::name);
  if (found == to.end()) found = to.insert(to.end(), {.name = group.name, .servers = {}});
  for (const frontend::ServerStatus& server : group.servers) add(server, *found);
}

void add(const frontend::FrontendReport& one, frontend::FrontendReport& to) {
  add_sums(one, to, kFrontendSums);
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
    add_sums(one, total, kWorkerSums);
    add_sums(one.store, total.store, kStoreSums);
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
