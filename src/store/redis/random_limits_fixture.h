// Random limits of every kind, and the times and costs at which they are decided, for tests that
// compare the functions in Redis with something else.
#pragma once

#include "base/random.h"
#include "store/redis/shared_model_fixture.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace sluice::store {

inline constexpr std::int64_t kSecond = 1'000'000;  // times are whole microseconds
inline constexpr std::int64_t kDay = 86'400 * kSecond;

enum class LimitKind { bucket, interval, window, calendar, first, counter, log, slices, slots };
inline constexpr std::array kLimitKinds{
    LimitKind::bucket,   LimitKind::interval, LimitKind::window,
    LimitKind::calendar, LimitKind::first,    LimitKind::counter,
    LimitKind::log,      LimitKind::slices,   LimitKind::slots};
inline constexpr std::array kLimitKindNames{"bucket",  "interval", "window", "calendar", "first",
                                            "counter", "log",      "slices", "slots"};

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most - least) + 1));
  }
  // All magnitudes alike.
  std::int64_t magnitude(std::int64_t least, std::int64_t most) {
    std::int64_t reach = 1;
    for (std::int64_t bits = between(0, 62); bits > 0 && reach < most - least; --bits) reach *= 2;
    return least + between(0, std::min(reach, most - least));
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  template <class Range>
  const auto& pick(const Range& range) {
    return range[static_cast<std::size_t>(between(0, std::ssize(range) - 1))];
  }

 private:
  Random random_;
};

[[nodiscard]] inline Nanos micros(std::int64_t count) { return Nanos{count * 1'000}; }

// The limits that one field has in the course of time, at least one: edits, tiers, overrides, now
// and then a limit of another kind.
[[nodiscard]] std::vector<SharedLimitPtr> random_limits(Chance& chance, LimitKind kind);

// How far the clock goes: edges and one microsecond beside them, often; back, now and then.
[[nodiscard]] std::int64_t random_gap(Chance& chance, const Limit& limit, std::int64_t now);
[[nodiscard]] core::Cost random_cost(Chance& chance, core::Cost capacity);

}  // namespace sluice::store
