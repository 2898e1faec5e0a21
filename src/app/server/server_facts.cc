#include "app/server/server_facts.h"

#include "frontend/metrics/server_metrics.h"

#include <chrono>
#include <utility>

namespace sluice::app {

std::string_view to_string(Phase phase) noexcept {
  switch (phase) {
    case Phase::starting: return "starting";
    case Phase::serving: return "serving";
    case Phase::draining: return "draining";
  }
  return "unknown";
}

ServerFacts::ServerFacts(Build build, metrics::Registry& registry, metrics::Shard shard)
    : build_(std::move(build)),
      shard_(shard),
      reloads_(registry.counter(frontend::kReloads, {"success"})),
      failed_reloads_(registry.counter(frontend::kReloads, {"error"})),
      last_reload_(registry.gauge(frontend::kLastReload)) {}

void ServerFacts::begin(std::size_t rules, Now now) {
  began_ = now;
  const std::lock_guard guard{mutex_};
  configuration_ = {.rules = rules, .read_at = now.wall(), .last_reload = {}};
  show_read(now.wall());
}

void ServerFacts::took_over(std::size_t rules, WallTime now) {
  reloads_.add(shard_);
  show_read(now);
  const std::lock_guard guard{mutex_};
  configuration_ = {.rules = rules,
                    .read_at = now,
                    .last_reload = frontend::ReloadStatus{.at = now, .succeeded = true}};
}

void ServerFacts::took_rules(std::size_t rules) {
  const std::lock_guard guard{mutex_};
  configuration_.rules = rules;
}

void ServerFacts::kept_the_old(WallTime now) {
  failed_reloads_.add(shard_);
  const std::lock_guard guard{mutex_};
  configuration_.last_reload = {.at = now, .succeeded = false};
}

ServerFacts::Configuration ServerFacts::configuration() const {
  const std::lock_guard guard{mutex_};
  return configuration_;
}

void ServerFacts::show_read(WallTime now) const noexcept {
  const std::chrono::duration<double> since_1970 = now.time_since_epoch();
  last_reload_.set(shard_, since_1970.count());
}

}  // namespace sluice::app
