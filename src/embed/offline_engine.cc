#include "embed/offline_engine.h"

#include <utility>

namespace sluice::embed {

Parsed<std::unique_ptr<OfflineEngine>> OfflineEngine::start(
    const EngineConfiguration& configuration, std::size_t memory, Now now) {
  auto made = std::make_unique<OfflineEngine>();
  auto table = store::LocalStore::open({.mapping = {.memory = memory}}, now);
  if (!table) return tl::unexpected(std::move(table.error()));
  made->table_ = *std::move(table);
  made->limits_ = std::make_unique<store::LocalLimits>(*made->table_);
  made->local_ = std::make_unique<store::LocalAuthority>(*made->table_, 1);
  const ExceptionsConfig& exceptions = configuration.exceptions;
  auto snapshot =
      engine::Snapshot::make(std::make_shared<const rules::RuleSet>(configuration.rules),
                             exceptions.overrides, *made->limits_, now);
  if (!snapshot) return tl::unexpected(std::move(snapshot.error()));
  made->snapshot_ = *std::move(snapshot);
  made->worker_ = std::make_unique<engine::Decider>(*made->local_, *made->limits_);
  made->worker_->use(made->snapshot_);
  made->worker_->use(std::make_shared<const engine::Lists>(exceptions.allow, exceptions.deny));
  return made;
}

}  // namespace sluice::embed
