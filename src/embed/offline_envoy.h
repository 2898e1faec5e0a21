// Trees of envoyproxy/ratelimit in one process, for commands that explain.
//
// One thread. Counts are its own and start at 0; the caller provides the time.
#pragma once

#include "engine/envoy_decider.h"
#include "engine/envoy_snapshot.h"
#include "rules/envoy_rules.h"
#include "store/local/local_authority.h"
#include "store/local/local_store.h"

#include <cstddef>
#include <memory>

namespace sluice::embed {

class OfflineEnvoy {
 public:
  [[nodiscard]] static Parsed<std::unique_ptr<OfflineEnvoy>> start(
      std::shared_ptr<const rules::EnvoyRules> rules, engine::EnvoyModes modes, std::size_t memory,
      Now now);

  [[nodiscard]] engine::EnvoyDecider& worker() noexcept { return *worker_; }

 private:
  std::unique_ptr<store::LocalStore> table_;
  std::unique_ptr<store::LocalLimits> limits_;
  std::unique_ptr<store::LocalAuthority> local_;
  std::unique_ptr<engine::EnvoyDecider> worker_;
};

}  // namespace sluice::embed
