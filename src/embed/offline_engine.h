// A configuration without a server: for commands that explain and replay.
//
// One thread. Counts are its own and start at 0; the caller provides the time.
#pragma once

#include "embed/config/engine_configuration.h"
#include "engine/decider.h"
#include "engine/snapshot.h"
#include "store/local/local_authority.h"
#include "store/local/local_store.h"

#include <cstddef>
#include <memory>
#include <string>

namespace sluice::embed {

class OfflineEngine {
 public:
  // The caller identifies clients, or gives the worker what load_clients() returns.
  [[nodiscard]] static Parsed<std::unique_ptr<OfflineEngine>> start(
      const EngineConfiguration& configuration, std::size_t memory, Now now);

  [[nodiscard]] const engine::Snapshot& snapshot() const noexcept { return *snapshot_; }
  [[nodiscard]] engine::Decider& worker() noexcept { return *worker_; }

 private:
  std::unique_ptr<store::LocalStore> table_;
  std::unique_ptr<store::LocalLimits> limits_;
  std::unique_ptr<store::LocalAuthority> local_;
  std::shared_ptr<const engine::Snapshot> snapshot_;
  std::unique_ptr<engine::Decider> worker_;
};

}  // namespace sluice::embed
