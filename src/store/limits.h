// Limits by number: what a store has to know of a limit is said once, before there are requests.
//
// One registry serves all workers and their stores; a store meets only numbers of its own registry.
// Numbers up to kLimitNumbers are of limits that this node's table counts alone. Numbers above are
// of shared limits, which no table ever meets.
#pragma once

#include "base/digest.h"
#include <sluice/diagnostic.h>
#include <sluice/limit.h>
#include <sluice/sharing.h>
#include <sluice/time.h>

#include <cstdint>
#include <optional>

namespace sluice::store {

using LimitNumber = std::uint32_t;
inline constexpr LimitNumber kLimitNumbers = (1U << 24U) - 1;

[[nodiscard]] constexpr bool is_shared(LimitNumber number) noexcept {
  return number > kLimitNumbers;
}

// Thread-safe. On the control path, but for use_for_request(): these may allocate, lock and wait.
class Limits {
 public:
  Limits() = default;
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;
  virtual ~Limits() = default;

  // Equal limits under equal terms get the same number. Each use is ended by one stop_using().
  // Fails for a limit that cannot be kept in that mode; the error names the nearest one that can.
  [[nodiscard]] virtual Parsed<LimitNumber> use(const Limit& limit, const Sharing& sharing,
                                                Now now) = 0;
  // For a limit that arrives with a request: new ones leave a quarter of the numbers to rules.
  [[nodiscard]] virtual Parsed<LimitNumber> use_for_request(const Limit& limit,
                                                            const Sharing& sharing, Now now) = 0;
  virtual void stop_using(LimitNumber number) noexcept = 0;

  // Whether limits under these terms are counted by this node alone.
  [[nodiscard]] virtual bool is_local(const Sharing& sharing) const noexcept = 0;

  // For keys of local limits: the state file's.
  [[nodiscard]] virtual DigestSecret secret() const noexcept = 0;
  // For keys of shared limits: the cluster's. Until it is known the keys are as for local limits,
  // and the store decides shared limits by their `on_failure`.
  [[nodiscard]] virtual std::optional<DigestSecret> shared_secret() const noexcept {
    return std::nullopt;
  }
};

}  // namespace sluice::store
