#include "embed/offline_envoy.h"

#include <utility>

namespace sluice::embed {

Parsed<std::unique_ptr<OfflineEnvoy>> OfflineEnvoy::start(
    std::shared_ptr<const rules::EnvoyRules> rules, engine::EnvoyModes modes, std::size_t memory,
    Now now) {
  auto made = std::make_unique<OfflineEnvoy>();
  auto table = store::LocalStore::open({.mapping = {.memory = memory}}, now);
  if (!table) return tl::unexpected(std::move(table.error()));
  made->table_ = *std::move(table);
  made->limits_ = std::make_unique<store::LocalLimits>(*made->table_);
  made->local_ = std::make_unique<store::LocalAuthority>(*made->table_, 1);
  auto snapshot = engine::EnvoySnapshot::make(std::move(rules), modes, *made->limits_, now);
  if (!snapshot) return tl::unexpected(std::move(snapshot.error()));
  made->worker_ = std::make_unique<engine::EnvoyDecider>(*made->local_);
  made->worker_->use(*std::move(snapshot));
  return made;
}

}  // namespace sluice::embed
