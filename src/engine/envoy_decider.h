// Decides as envoyproxy/ratelimit does, one worker per thread.
//
// Each descriptor of a request stands alone: every descriptor with a limit is counted, whether or
// not it or another one is over. Deciding has three parts: find the limit of each descriptor, count
// in the store, and compare the counts. A store that completes later would fit between the last
// two; today's stores complete at once, and a store that does not counts as failed.
//
// One thread. Deciding allocates nothing, takes no lock, reads no clock and does not log.
#pragma once

#include "engine/envoy_call.h"
#include "engine/envoy_snapshot.h"
#include "store/store.h"
#include <sluice/result.h>
#include <sluice/time.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

namespace sluice::engine {

struct EnvoyCounters {
  std::uint64_t decided = 0;
  std::uint64_t over_limit = 0;       // of these, as a whole
  std::uint64_t unknown_domains = 0;  // also of these: nothing limits them
  std::uint64_t bad_requests = 0;
  std::uint64_t store_failures = 0;
};

class EnvoyDecider {
 public:
  explicit EnvoyDecider(store::Store& store) noexcept : store_(store) {}

  // For requests from now on. Names in responses live as long as the snapshot they come from.
  void use(std::shared_ptr<const EnvoySnapshot> snapshot) noexcept {
    snapshot_ = std::move(snapshot);
  }

  // An error where envoyproxy/ratelimit returns one: without rules, domain or descriptors, and when
  // the store fails; also for more descriptors than a response has room for, and for a request's
  // own limit with an unknown unit. The response is then unusable. Only when the store fails may
  // some of the descriptors have been counted.
  [[nodiscard]] Result<void> should_rate_limit(const EnvoyRequest& request, Now now,
                                               EnvoyResponse& response) noexcept;

  [[nodiscard]] const EnvoyCounters& counters() const noexcept { return counters_; }

 private:
  // The limit of one descriptor.
  struct Applied {
    enum class Kind : std::uint8_t { nothing, unlimited, counted };
    Kind kind = Kind::nothing;
    EnvoyCurrentLimit limit;                  // counted
    const rules::EnvoyLimit* rule = nullptr;  // null: no limit, or the request's own
    std::uint64_t sum = 0;                    // of the window's hits, including this request
  };

  [[nodiscard]] Result<void> check(const EnvoyRequest& request) const noexcept;
  [[nodiscard]] Applied applied(std::string_view domain,
                                const EnvoyDescriptor& descriptor) const noexcept;
  void find_limits(const EnvoyRequest& request) noexcept;
  void drop_replaced() noexcept;
  [[nodiscard]] Result<void> count_all(const EnvoyRequest& request, Now now) noexcept;
  [[nodiscard]] Result<std::uint64_t> count(const store::Check& check, Now now) noexcept;
  [[nodiscard]] EnvoyCode overall(std::span<const EnvoyStatus> statuses) const noexcept;
  [[nodiscard]] bool is_quota(const Applied& applied) const noexcept;
  [[nodiscard]] std::span<Applied> all() noexcept { return std::span{applied_}.first(count_); }

  store::Store& store_;
  std::shared_ptr<const EnvoySnapshot> snapshot_;
  std::array<Applied, kEnvoyDescriptorsMax> applied_{};  // of the request being decided
  std::size_t count_ = 0;
  store::Call call_;
  EnvoyCounters counters_;
};

}  // namespace sluice::engine
