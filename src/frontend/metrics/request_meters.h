// Counts requests as they end: by response, and by upstream.
//
// Made off the request path; known names keep their counters. Immutable, so workers share them,
// each with its own shard: a request costs a handful of additions to cells that no other worker
// writes.
#pragma once

#include "frontend/access_log/access_record.h"
#include "metrics/registry.h"
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <string_view>

namespace sluice::frontend {

class RequestMeters {
 public:
  RequestMeters(metrics::Registry& registry, std::string_view listener);

  void decided(metrics::Shard shard, Nanos took) const noexcept {
    decision_duration_.record(shard, took);
  }
  void ended(metrics::Shard shard, const AccessRecord& record) const noexcept;

 private:
  static constexpr std::size_t kClasses = 6;  // none, 1xx to 5xx

  std::array<metrics::Counter, kClasses> by_class_;
  metrics::DurationHistogram duration_;
  metrics::DurationHistogram decision_duration_;
  metrics::Counter received_;
  metrics::Counter sent_;
};

// Of one upstream.
class UpstreamMeters {
 public:
  UpstreamMeters(metrics::Registry& registry, std::string_view upstream);

  void ended(metrics::Shard shard, const AccessRecord& record) const noexcept;

 private:
  // 1xx to 5xx, then requests without a response.
  static constexpr std::size_t kTimeout = 5;
  static constexpr std::size_t kFailed = 6;
  static constexpr std::size_t kClientClosed = 7;

  [[nodiscard]] static std::size_t result_of(const AccessRecord& record) noexcept;

  std::array<metrics::Counter, 8> by_result_;
  metrics::DurationHistogram duration_;
  metrics::Counter retries_;
};

}  // namespace sluice::frontend
