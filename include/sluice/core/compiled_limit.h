// From the numbers an operator wrote to the numbers a step function uses.
//
// compile() checks, in wide arithmetic, every range that the step functions rely on, so that they
// need no checks of their own. Nothing is clamped: a limit that cannot be enforced is rejected with
// the change, or the algorithm, that would make it possible.
#pragma once

#include <sluice/core/concurrency.h>
#include <sluice/core/fixed_window.h>
#include <sluice/core/gcra.h>
#include <sluice/core/sliding_buckets.h>
#include <sluice/core/sliding_counter.h>
#include <sluice/core/sliding_log.h>
#include <sluice/core/token_bucket.h>
#include <sluice/diagnostic.h>
#include <sluice/limit.h>

#include <cstdint>
#include <optional>
#include <variant>

namespace sluice::core {

inline constexpr std::uint64_t kAmountMax = 1'000'000'000;
inline constexpr Nanos kPeriodMin = std::chrono::milliseconds{1};
inline constexpr Nanos kPeriodMax = std::chrono::hours{24 * 366};
inline constexpr Nanos kDrainMax = std::chrono::hours{24 * 731};  // two years
inline constexpr Nanos kDelayMax = std::chrono::hours{24};
inline constexpr Nanos kSlotTtlDefault = std::chrono::seconds{60};
inline constexpr std::int64_t kSlicesDefault = 8;

using CompiledLimit = std::variant<GcraLimit, IntervalLimit, WindowLimit, FirstRequestLimit,
                                   LogLimit, CounterLimit, BucketsLimit, ConcurrencyLimit>;

[[nodiscard]] Parsed<CompiledLimit> compile(const Limit& limit);

// Whether an algorithm has a burst.
[[nodiscard]] constexpr bool is_bucket(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::token_bucket || algorithm == Algorithm::leaky_bucket ||
         algorithm == Algorithm::gcra;
}

// What `limit` is in every decision, and the largest cost that can ever pass.
[[nodiscard]] std::uint64_t capacity(const Limit& limit) noexcept;

// The most that can be admitted in any window of one period (in flight, for concurrency), however
// the requests are timed. Release times count where requests queue. For a compiled limit, without
// refunds.
[[nodiscard]] std::uint64_t most_admitted(const Limit& limit) noexcept;

// One receipt for two charges of one request, `earlier` and `later`, if nothing was charged between
// them: a refund of it finds what refunds of both would. Else nothing: both are kept.
[[nodiscard]] std::optional<Receipt> joined(const CompiledLimit& limit, Receipt earlier,
                                            Receipt later) noexcept;

}  // namespace sluice::core
