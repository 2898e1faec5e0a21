// Runs recorded requests through one limit, each key on its own, on the trace's own time.
#pragma once

#include "cli/replay/trace.h"
#include <sluice/core/cell.h>
#include <sluice/decision.h>

#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

namespace sluice::cli {

// One thread. Memory grows with the number of keys.
class Replayer {
 public:
  explicit Replayer(core::CompiledLimit limit) : limit_(std::move(limit)) {}

  [[nodiscard]] Decision decide(const TraceRequest& request);

 private:
  // A concurrency lease of a request that is still in flight. Its holder renews it at half its life
  // and gives it back at the end; a request without a duration never does, and its lease lapses.
  struct Flight {
    WallTime due;  // the next thing to do: renew, or give back at the end
    WallTime end;
    std::string key;
    core::Receipt lease;

    friend bool operator>(const Flight& a, const Flight& b) noexcept { return a.due > b.due; }
  };

  void take_off(const TraceRequest& request, core::Receipt lease);
  void settle_flights(WallTime now);
  [[nodiscard]] WallTime next_due(WallTime now, WallTime end) const noexcept;

  core::CompiledLimit limit_;
  std::unordered_map<std::string, core::Cell> cells_;
  std::priority_queue<Flight, std::vector<Flight>, std::greater<>> flights_;
};

}  // namespace sluice::cli
