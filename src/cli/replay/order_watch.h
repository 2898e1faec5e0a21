// Requests of a log that lie before an earlier line.
//
// Logs that go back in time are legal (they are written when a request ends) but worth a word. One
// thread.
#pragma once

#include <sluice/time.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::cli {

class OrderWatch {
 public:
  void see(WallTime at) noexcept {
    if (!first_) first_ = at;
    if (at < latest_) {
      ++out_of_order_;
      largest_step_ = std::max(largest_step_, latest_ - at);
    }
    latest_ = std::max(latest_, at);
  }

  [[nodiscard]] std::optional<WallTime> first() const noexcept { return first_; }
  [[nodiscard]] WallTime latest() const noexcept { return latest_; }
  [[nodiscard]] Nanos largest_step() const noexcept { return largest_step_; }

  // On standard error, if there were any; `meaning` says what becomes of them.
  void note(std::string_view meaning) const;

 private:
  std::optional<WallTime> first_;
  WallTime latest_;
  Nanos largest_step_{0};
  std::uint64_t out_of_order_ = 0;
};

}  // namespace sluice::cli
