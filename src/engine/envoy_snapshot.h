// Trees of envoyproxy/ratelimit, ready for requests.
//
// envoyproxy/ratelimit adds up hits and compares the sum with a limit afterwards. So one counter
// may serve several amounts, as when a request brings its own limit, and goes on past all of them.
// Therefore the store does not know the limits of the trees but seven counters, one per unit:
// windows aligned to the epoch that count up to kCountMax, more than any sum that is compared. The
// worker compares the sums.
//
// A full store first evicts keys that have used the smallest share of their limit. These have used
// little of kCountMax, so they go before the counters of rules.
//
// Immutable. The store outlives it; only its limits are needed here.
#pragma once

#include "base/digest.h"
#include "rules/envoy_rules.h"
#include "store/limits.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace sluice::engine {

// Modes for all limits.
struct EnvoyModes {
  bool shadow_mode = false;  // the response as a whole is never "over"; the statuses show it
  bool quota_mode = false;   // as if every descriptor's limit had it
};

class EnvoySnapshot {
 public:
  // A sum stops here. A larger limit is never reached.
  static constexpr std::uint64_t kCountMax = core::kAmountMax;

  // Fails when the store has no room for the counters.
  [[nodiscard]] static Parsed<std::shared_ptr<const EnvoySnapshot>> make(
      std::shared_ptr<const rules::EnvoyRules> rules, EnvoyModes modes, store::Limits& registry,
      Now now);
  EnvoySnapshot(const EnvoySnapshot&) = delete;
  EnvoySnapshot& operator=(const EnvoySnapshot&) = delete;
  ~EnvoySnapshot();

  [[nodiscard]] const rules::EnvoyRules& rules() const noexcept { return *rules_; }
  [[nodiscard]] const EnvoyModes& modes() const noexcept { return modes_; }

  // The counter of a unit other than unknown.
  [[nodiscard]] store::LimitNumber counter(rules::EnvoyUnit unit) const noexcept {
    return counters_[static_cast<std::size_t>(unit) - 1];
  }

  // The counted key: domain, entries and unit. `limit` is the rules' limit for the entries, or null
  // if the request brought its own.
  [[nodiscard]] Digest key(std::string_view domain, std::span<const DescriptorEntry> entries,
                           rules::EnvoyUnit unit, const rules::EnvoyLimit* limit) const noexcept;

 private:
  static constexpr std::size_t kUnits = 7;

  EnvoySnapshot(std::shared_ptr<const rules::EnvoyRules> rules, EnvoyModes modes,
                store::Limits& registry) noexcept;
  [[nodiscard]] Parsed<void> use_counters(Now now);

  std::shared_ptr<const rules::EnvoyRules> rules_;
  EnvoyModes modes_;
  store::Limits& registry_;
  DigestSecret secret_;
  std::array<store::LimitNumber, kUnits> counters_{};  // by the number of the unit, from 1
  std::size_t used_ = 0;                               // of them
};

}  // namespace sluice::engine
