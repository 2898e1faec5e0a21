// The most that a limit can admit of one client in a run.
#pragma once

#include <sluice/limit.h>

#include <cstdint>
#include <optional>

namespace sluice::cli {

struct Expectation {
  std::uint64_t amount = 1;
  Nanos period{1};
  std::optional<std::uint64_t> burst;
  std::optional<Algorithm> algorithm;  // nothing: whichever it is

  [[nodiscard]] double per_second() const noexcept;

  // In a time of this length, its first and last instant included. Buckets give out a burst and
  // what has flowed in since; a log never more than the amount in any period; windows that stand
  // still give out the amount in each window that the time touches, which may be two more than fit
  // into it. Where the algorithm is not known, it is the most of these.
  [[nodiscard]] std::uint64_t most_in(Nanos time) const noexcept;
};

}  // namespace sluice::cli
