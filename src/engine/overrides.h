// Other limits for one subject, for a while: user=acme twice as much for 2h.
//
// An override multiplies amount and burst of all limits whose `per` contains its subject. Counts
// continue: the key is the same.
#pragma once

#include "engine/subject.h"
#include "rules/rule.h"
#include <sluice/diagnostic.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::engine {

struct Override {
  Subject subject;
  std::uint32_t permille = 1000;    // the multiplier; 2000: twice as much
  std::optional<WallTime> expires;  // absent: never
  std::string note;

  [[nodiscard]] bool holds(WallTime now) const noexcept { return !expires || now < *expires; }
};

inline constexpr std::uint32_t kPermilleMax = 1'000'000;

// "2", "1.5", "0.25": in thousandths, at least one, at most a thousand times.
[[nodiscard]] Parsed<std::uint32_t> parse_multiplier(std::string_view text);

// Rounded down, but never to 0.
[[nodiscard]] Limit multiplied(Limit limit, std::uint32_t permille) noexcept;

// Whether a rule gives subjects of this kind counters of their own.
[[nodiscard]] bool is_per(const rules::Rule& rule, Subject::Kind kind) noexcept;

}  // namespace sluice::engine
