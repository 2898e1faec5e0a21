// Reports that workers make on demand. Plain data, and the poll for it.
//
// Workers own their counts, and no other thread reads them: a reader posts a poll and waits for a
// moment. So it costs nothing while there is no reader.
#pragma once

#include "frontend/frontend.h"
#include "store/store.h"
#include <sluice/time.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::app {

struct WorkerReport {
  struct OfFrontend {
    std::string_view name;
    frontend::FrontendReport report;
  };
  std::vector<OfFrontend> frontends;  // of the ones on workers
  std::uint64_t log_written = 0;
  std::uint64_t log_suppressed = 0;
  std::uint64_t log_dropped = 0;
  std::uint64_t blocks = 0;  // started
  std::uint64_t blocks_dropped = 0;
  std::uint64_t block_rejections_lost = 0;
  std::uint64_t block_names_displaced = 0;
  std::uint64_t auth_failures_forgotten = 0;
  std::uint64_t dynamic_limits_skipped = 0;
  std::uint64_t shadow_checks_skipped = 0;
  store::StoreCounts store;
};

// The sum of all. Workers that reload at different moments may know different upstreams.
[[nodiscard]] WorkerReport total_of(std::span<const WorkerReport> reports);
// Of all front ends together.
[[nodiscard]] frontend::FrontendReport all_frontends_of(const WorkerReport& report);

// The reports for one poll. Shared with the workers, some of which may report too late.
// Thread-safe.
class WorkerPoll {
 public:
  explicit WorkerPoll(std::size_t workers) : answers_(workers), missing_(workers) {}

  void answer(std::size_t worker, WorkerReport report);
  // All of them, or the ones in time.
  [[nodiscard]] std::vector<std::optional<WorkerReport>> wait(Nanos at_most);

 private:
  std::mutex mutex_;
  std::condition_variable complete_;
  std::vector<std::optional<WorkerReport>> answers_;
  std::size_t missing_;
};

}  // namespace sluice::app
