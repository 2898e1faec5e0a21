// Failures on a worker for the operator: a line at once, then at most one a second.
//
// Failures come in floods, so the next line has the number of omitted ones. One thread; another
// thread writes the lines.
#pragma once

#include "app/server/log_line.h"
#include "frontend/observer.h"
#include <sluice/time.h>

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace sluice::app {

// The server and its upstream, and the address if the server has several.
[[nodiscard]] inline std::string text_of(const frontend::ServerPlace& place) {
  std::string text = fmt::format("{} at {}", place.upstream, place.server);
  if (place.address) text += fmt::format(" ({})", place.address->text());
  return text;
}

class LogThrottle {
 public:
  explicit LogThrottle(Say say) : say_(std::move(say)) {}

  void add(const frontend::ServerFailure& failure, MonoTime now) {
    if (now < next_) {
      ++left_out_;
      return;
    }
    std::string line = fmt::format("{}: {}", text_of(failure.place), failure.what);
    if (!failure.reason.empty()) line += fmt::format(": {}", failure.reason);
    if (left_out_ > 0) line += fmt::format(" (and {} failures before)", left_out_);
    left_out_ = 0;
    next_ = now + kEvery;
    say_(LogLevel::warning, std::move(line));
  }

 private:
  static constexpr Nanos kEvery{std::chrono::seconds{1}};

  Say say_;
  MonoTime next_;
  std::uint64_t left_out_ = 0;
};

}  // namespace sluice::app
