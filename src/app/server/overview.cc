#include "app/server/overview.h"

#include "frontend/metrics/server_metrics.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace sluice::app {
namespace {

// The sum of all series that have the same value of one label, by that value.
frontend::NamedCounts summed_by(const metrics::FamilyReading& family, std::string_view label) {
  const auto place =
      static_cast<std::size_t>(std::ranges::find(family.labels, label) - family.labels.begin());
  frontend::NamedCounts sums;
  for (const metrics::SeriesReading& series : family.series) {
    const std::string& name = series.values[place];
    auto found = std::ranges::find(sums, name, &std::pair<std::string, std::uint64_t>::first);
    if (found == sums.end()) found = sums.insert(sums.end(), {name, 0});
    found->second += static_cast<std::uint64_t>(series.value);
  }
  return sums;
}

// Reasons to allow are in the same table as reasons to reject, and never counted.
frontend::NamedCounts without_zeros(frontend::NamedCounts counts) {
  std::erase_if(counts, [](const auto& count) { return count.second == 0; });
  return counts;
}

}  // namespace

Overview::Overview(const Parts& parts, metrics::Shard shard)
    : parts_(parts), gauges_(parts.registry, shard), last_(parts.workers.size()) {}

std::vector<frontend::Check> Overview::readiness() const {
  const Phase phase = parts_.facts.phase();
  return {{.name = "configuration is loaded", .holds = true},
          {.name = "listeners are open", .holds = phase != Phase::starting},
          {.name = "not draining", .holds = phase != Phase::draining}};
}

WorkerReport Overview::ask_workers() {
  const auto poll = std::make_shared<WorkerPoll>(parts_.workers.size());
  for (std::size_t i = 0; i < parts_.workers.size(); ++i) parts_.workers[i]->report(poll, i);
  std::vector<std::optional<WorkerReport>> answers = poll->wait(kPatience);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i]) last_[i] = *std::move(answers[i]);
  }
  return total_of(last_);
}

// The table itself counts its keys only once an hour.
store::LocalStoreStatus Overview::look_at_table() const {
  store::LocalStoreStatus status = parts_.state.table().status();
  const Now now = parts_.clock.now();
  status.slots_used = parts_.state.table().keys_approx(now);
  status.cells_used = parts_.state.table().cells_in_use(now);
  return status;
}

std::string Overview::metrics(metrics::Exposition form) {
  const std::lock_guard guard{mutex_};
  if (parts_.feed != nullptr) gauges_.show(parts_.feed->status());
  gauges_.show(ask_workers(), look_at_table(), parts_.workers.size());
  return metrics::expose(parts_.registry.read(), form);
}

std::optional<frontend::RulesFileStatus> Overview::rules_file() const {
  if (parts_.feed == nullptr) return std::nullopt;
  const rules::SyncStatus status = parts_.feed->status();
  const auto text = [](const std::optional<Diagnostic>& one) {
    return one ? one->text() : std::string{};
  };
  return frontend::RulesFileStatus{.source = status.source,
                                   .version = status.version,
                                   .loaded_at = status.loaded,
                                   .of_last_run = status.from_last_good,
                                   .error = text(status.error),
                                   .last_good_error = text(status.last_good_error),
                                   .watch_problem = status.watch_problem};
}

frontend::StatusReport Overview::status() {
  const std::lock_guard guard{mutex_};
  const WorkerReport workers = ask_workers();
  frontend::FrontendReport total = all_frontends_of(workers);
  const Now now = parts_.clock.now();
  const ServerFacts::Configuration configuration = parts_.facts.configuration();
  const store::LocalStoreStatus table = look_at_table();
  const metrics::Registry& registry = parts_.registry;
  return {.version = parts_.facts.build().version,
          .state = std::string{to_string(parts_.facts.phase())},
          .started_at = parts_.facts.began().wall(),
          .uptime = now.mono - parts_.facts.began().mono,
          .workers = parts_.workers.size(),
          .file = parts_.facts.build().file,
          .read_at = configuration.read_at,
          .rules = configuration.rules,
          .last_reload = configuration.last_reload,
          .rules_file = rules_file(),
          .listeners = parts_.facts.listeners,
          .connections = total.connections,
          .connections_evicted = total.evicted,
          .connections_rejected = total.connections_rejected,
          .requests_in_flight = total.in_flight,
          .requests_queued = total.queued,
          .requests = summed_by(registry.read(frontend::kRequests), "code"),
          .decisions = summed_by(registry.read(frontend::kDecisions), "decision"),
          .rejections = without_zeros(summed_by(registry.read(frontend::kRejections), "reason")),
          .upstreams = std::move(total.upstreams),
          .keys = table.slots_used,
          .keys_max = table.slots,
          .evictions = table.counters.evicted,
          .table_full = {.now = parts_.state.table().is_full(now),
                         .approximated = table.counters.approximated,
                         .allowed = table.counters.untracked,
                         .rejected = table.counters.rejected_for_room,
                         .refunds_lost = table.counters.refunds_lost,
                         .blocks_dropped = workers.blocks_dropped,
                         .block_rejections_lost = workers.block_rejections_lost,
                         .cells = table.cells_used,
                         .cells_max = table.cells},
          .blocks = parts_.state.blocks().size()};
}

}  // namespace sluice::app
