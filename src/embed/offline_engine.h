// A configuration at work without a server: for commands that explain and replay.
//
// One thread. Counts are its own and begin at nothing; time is whatever it is given.
#pragma once

#include "app/config/configuration.h"
#include "engine/decider.h"
#include "engine/snapshot.h"
#include "store/local/local_authority.h"
#include "store/local/local_store.h"

#include <cstddef>
#include <memory>
#include <string>

namespace sluice::app {

class OfflineEngine {
 public:
  // Who is asking, the caller says, or load_clients() finds out.
  [[nodiscard]] static Parsed<std::unique_ptr<OfflineEngine>> start(Configuration configuration,
                                                                    std::size_t memory, Now now);

  [[nodiscard]] const Configuration& configuration() const noexcept { return configuration_; }
  [[nodiscard]] const engine::Snapshot& snapshot() const noexcept { return *snapshot_; }
  [[nodiscard]] engine::Decider& worker() noexcept { return *worker_; }

 private:
  Configuration configuration_;
  std::unique_ptr<store::LocalStore> table_;
  std::unique_ptr<store::LocalAuthority> local_;
  std::shared_ptr<const engine::Snapshot> snapshot_;
  std::unique_ptr<engine::Decider> worker_;
};

}  // namespace sluice::app
