// A limit that many nodes share through Redis.
//
// The functions count in Lua's numbers, which are exact to 2^53, and in microseconds.
// compile_shared() ensures that every number a function can form for an accepted limit stays below
// 2^53. Nothing is rounded silently: for a limit that cannot be shared, the error names the nearest
// limit that can.
//
// Buckets count 2^f ticks per microsecond, with the smallest f for which one token is a whole
// number of ticks or at least 256 of them: the enforced rate is never above the configured one and
// at most 1/256 below it.
#pragma once

#include <sluice/core/calendar.h>
#include <sluice/core/compiled_limit.h>
#include <sluice/diagnostic.h>
#include <sluice/limit.h>

#include <cstdint>
#include <memory>
#include <string>

namespace sluice::store {

// Immutable once compiled, thread-safe.
struct SharedLimit {
  Limit limit;
  // The functions' steps, as the core has them. For a continuous bucket the unit of time is a
  // microsecond, for all others a nanosecond.
  core::CompiledLimit steps;
  std::string text;            // in calls and in fields; functions/*.lua explain it
  core::Cost capacity = 1;     // `limit` of every decision
  bool counts_micros = false;  // whether `steps` is a continuous bucket
  // Whether nodes may lease its tokens: continuous buckets and fixed windows of at least 800 ms,
  // unless requests queue or rejected ones count.
  bool is_leasable = false;

  [[nodiscard]] const core::CalendarGrid* calendar() const noexcept;
};

[[nodiscard]] Parsed<SharedLimit> compile_shared(const Limit& limit);

}  // namespace sluice::store
