// More, or less, for somebody, for a while: user=acme 2x for 2h.
//
// An override multiplies amount and burst of those limits whose `per` contains its subject. Counts
// go on: the key is the same.
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
  std::uint32_t permille = 1000;  // 2000: twice as much
  std::optional<WallTime> until;  // absent: for good
  std::string note;

  [[nodiscard]] bool holds(WallTime now) const noexcept { return !until || now < *until; }
};

inline constexpr std::uint32_t kPermilleMax = 1'000'000;

// "2x", "1.5x", "0.25x": in thousandths, at least one, at most a thousand times.
[[nodiscard]] Parsed<std::uint32_t> parse_factor(std::string_view text);
[[nodiscard]] std::string format_factor(std::uint32_t permille);

// Rounded down, but never to nothing.
[[nodiscard]] Limit multiplied(Limit limit, std::uint32_t permille) noexcept;

// Whether a rule gives subjects of this kind counters of their own.
[[nodiscard]] bool is_per(const rules::Rule& rule, Subject::Kind kind) noexcept;

}  // namespace sluice::engine
