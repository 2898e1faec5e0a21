// What goes wrong on a worker and the operator should know: a line at once, then one a second.
//
// Trouble comes in floods, so the next line says how many were left out. One thread; the lines go
// to another one, which says them.
#pragma once

#include "frontend/gateway/gateway.h"
#include <sluice/time.h>

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace sluice::app {

class Complaints {
 public:
  explicit Complaints(std::function<void(std::string)> say) : say_(std::move(say)) {}

  void add(const gateway::ServerFailure& failure, MonoTime now) {
    if (now < next_) {
      ++left_out_;
      return;
    }
    std::string line = fmt::format("{} at {}", failure.upstream, failure.server);
    if (failure.address) line += fmt::format(" ({})", failure.address->text());
    line += fmt::format(": {}", failure.what);
    if (!failure.reason.empty()) line += fmt::format(": {}", failure.reason);
    if (left_out_ > 0) line += fmt::format(" (and {} failures before)", left_out_);
    left_out_ = 0;
    next_ = now + kEvery;
    say_(std::move(line));
  }

 private:
  static constexpr Nanos kEvery{std::chrono::seconds{1}};

  std::function<void(std::string)> say_;
  MonoTime next_;
  std::uint64_t left_out_ = 0;
};

}  // namespace sluice::app
