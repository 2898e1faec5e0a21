// Random limits and random traffic for properties: the values at which limiters break, often, and
// everything in between, sometimes.
#pragma once

#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>
#include <sluice/core/step.h>
#include <sluice/decision.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

// So that a failure shows what it is about.
void PrintTo(const Decision& decision, std::ostream* out);
void showValue(const Decision& decision, std::ostream& out);
void showValue(const Limit& limit, std::ostream& out);

}  // namespace sluice

namespace sluice::testing {

using core::Cost;

inline constexpr std::int64_t kYear = std::int64_t{366} * 86'400 * 1'000'000'000;

// One request: so long after the one before, so expensive.
struct Beat {
  std::int64_t gap = 0;
  Cost cost = 0;
};
void showValue(const Beat& beat, std::ostream& out);

// The lengths of time that matter to a limit, and how much it can hold.
struct Scale {
  std::int64_t interval = 1;  // of one token, slice or the like
  std::int64_t period = 1;
  std::uint64_t capacity = 1;
  std::int64_t longest_gap = 3 * kYear;
};
[[nodiscard]] Scale scale_of(const Limit& limit);

// Uniform, whatever rapidcheck's size is.
[[nodiscard]] rc::Gen<std::uint64_t> between(std::uint64_t least, std::uint64_t most);

// All magnitudes alike.
[[nodiscard]] rc::Gen<std::uint64_t> magnitude(std::uint64_t least, std::uint64_t most);

// 0, 1 ns, multiples of the interval and the period give or take 1 ns, anything up to a period, and
// years.
[[nodiscard]] rc::Gen<std::int64_t> gaps(const Scale& scale);

// 0 to twice the capacity, mostly what can pass.
[[nodiscard]] rc::Gen<Cost> costs(std::uint64_t capacity);

[[nodiscard]] rc::Gen<std::vector<Beat>> traffic(const Scale& scale, std::size_t longest = 40);

// The last instant that random histories reach: what a limit adds to it still ends before the last
// instant there is.
inline constexpr std::int64_t kLastInstant =
    Nanos{kWallTimeEnd.time_since_epoch()}.count() - 4 * kYear;

// An instant to start at, from 1970 to kLastInstant, often on an edge of the given period.
[[nodiscard]] rc::Gen<std::int64_t> starts(std::int64_t period);

// Later by a gap, but not past kLastInstant.
[[nodiscard]] constexpr std::int64_t later(std::int64_t now, std::int64_t gap) noexcept {
  return std::max(now, std::min(now + gap, kLastInstant));
}

// Limits that compile, over the whole range that compile() accepts.
[[nodiscard]] rc::Gen<Limit> bucket_limits();    // token_bucket, leaky_bucket, gcra
[[nodiscard]] rc::Gen<Limit> interval_limits();  // token_bucket, refill: interval
[[nodiscard]] rc::Gen<Limit> limits_of(Algorithm algorithm);

// Both clocks at the same reading.
[[nodiscard]] constexpr Now at(std::int64_t nanos) noexcept {
  return {.mono = MonoTime{Nanos{nanos}}, .wall_offset = Nanos{0}};
}

// A limit that is known to compile.
[[nodiscard]] core::CompiledLimit compiled(const Limit& limit);

// What is left, without touching the cell.
[[nodiscard]] Decision peek(const core::Cell& cell, const core::CompiledLimit& limit,
                            std::int64_t now);

// Admissions and the windows they fall into.
class Envelope {
 public:
  void admit(std::int64_t at, std::uint64_t cost) { admitted_.emplace_back(at, cost); }

  // The most that lies in any half-open window of the given length.
  [[nodiscard]] std::uint64_t densest(std::int64_t period) const;

 private:
  std::vector<std::pair<std::int64_t, std::uint64_t>> admitted_;
};

// One limit of every kind and variant that behaves differently, small enough to be exhausted.
struct Subject {
  std::string name;
  Limit limit;
};
[[nodiscard]] std::vector<Subject> all_subjects();
void PrintTo(const Subject& subject, std::ostream* out);

}  // namespace sluice::testing
