// Traffic against a limiter in this process.
//
// Requests start on a schedule that does not wait for answers (open loop), so a slow or rejecting
// limiter cannot slow the traffic down, and every wait is measured from the instant at which the
// schedule wanted the request to start.
#pragma once

#include "cli/load/timeline.h"
#include "metrics/histogram.h"
#include <sluice/core/compiled_limit.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace sluice::cli {

struct Traffic {
  std::uint64_t requests = 0;
  std::uint64_t per_second = 1;  // offered
  std::uint64_t keys = 1;        // drawn evenly
  std::uint64_t seed = 1;
  std::optional<Nanos> retry;  // set: a rejected request tries again after this long, until allowed
  std::uint64_t in_vain_max = ~std::uint64_t{0};  // give up after so many rejections in a row
  Nanos hold{0};  // concurrency: how long an admitted request stays in flight
};

struct LoadResult {
  std::uint64_t requests = 0;  // that came to an end: admitted, or rejected without another try
  std::uint64_t admitted = 0;
  std::uint64_t rejected = 0;
  std::uint64_t attempts = 0;
  Nanos elapsed{0};  // from the first start to the last end, at least as long as the schedule
  Histogram wait;    // of admitted requests, until they were let through
  std::vector<std::uint64_t> admitted_in_second;
  bool interrupted = false;
  bool gave_up = false;  // too many rejections in a row
};

// How far a run has come; called now and then. Returning false ends the run.
using Watcher = std::function<bool(double share)>;

// One limiter, all keys, across as many runs as wanted. One thread.
class Generator {
 public:
  Generator(core::CompiledLimit limit, Timeline& time);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  [[nodiscard]] LoadResult run(const Traffic& traffic, const Watcher& watch);

 private:
  struct Limiter;
  std::unique_ptr<Limiter> limiter_;
  Timeline& time_;
};

}  // namespace sluice::cli
