// Finds changes by polling: a change counts once two looks in a row saw the same.
//
// A single look may fall between two parts of a file that is being written. A writer that never
// pauses delays the change by at most `looks_max` looks. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace sluice::rules {

template <class Reading>
class TwoReadings {
 public:
  enum class Found : std::uint8_t {
    nothing,    // no change
    unsettled,  // another reading; look again soon
    change,     // another reading, seen twice
  };

  explicit TwoReadings(Reading known, unsigned looks_max = 20)
      : known_(std::move(known)), looks_max_(looks_max) {}

  [[nodiscard]] Found look(Reading seen) {
    if (seen == known_) {
      accept(std::move(seen));
      return Found::nothing;
    }
    if (++looks_ < looks_max_ && seen != before_) {
      before_ = std::move(seen);
      return Found::unsettled;
    }
    accept(std::move(seen));
    return Found::change;
  }

  // The last reading was acted on.
  void accept(Reading seen) {
    known_ = std::move(seen);
    before_.reset();
    looks_ = 0;
  }

 private:
  Reading known_;                  // the reading that was last acted on
  std::optional<Reading> before_;  // another reading, seen once
  unsigned looks_max_;
  unsigned looks_ = 0;  // since the change
};

}  // namespace sluice::rules
