// The result of one check.
#pragma once

#include <sluice/time.h>

#include <cstdint>
#include <optional>

namespace sluice {

enum class Verdict : std::uint8_t {
  allowed,
  rejected,
  never,  // the cost exceeds the capacity: no wait will help, and nothing was consumed
};

struct Decision {
  Verdict verdict = Verdict::allowed;

  std::uint64_t limit = 0;      // what `remaining` is when the key is idle (burst for buckets)
  std::uint64_t remaining = 0;  // this many requests of cost 1, sent at once, are admitted
  Nanos reset_after{0};         // until `remaining` is back at `limit`, if nothing else arrives

  // The shortest wait after which the same request, alone, is admitted. Absent when it was
  // admitted, when it never will be, and for concurrency, where it cannot be known.
  std::optional<Nanos> retry_after;

  Nanos delay{0};  // queue an admitted request this long before forwarding it (queueing only)

  [[nodiscard]] constexpr bool allowed() const noexcept { return verdict == Verdict::allowed; }

  friend constexpr bool operator==(const Decision&, const Decision&) = default;
};

}  // namespace sluice
