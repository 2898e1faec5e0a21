// Decides as envoyproxy/ratelimit does, one worker per thread.
//
// Each descriptor of a request stands alone: every descriptor with a limit is counted, whether or
// not it or another one is over. Deciding has three parts: find the limit of each descriptor, count
// in the store, at once or later, and compare the counts.
//
// One thread. Deciding allocates nothing, takes no lock, reads no clock and does not log.
#pragma once

#include "base/pool.h"
#include "engine/envoy_call.h"
#include "engine/envoy_snapshot.h"
#include "store/store.h"
#include <sluice/result.h>
#include <sluice/time.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace sluice::engine {

struct EnvoyCounters {
  std::uint64_t decided = 0;
  std::uint64_t over_limit = 0;       // of these, as a whole
  std::uint64_t unknown_domains = 0;  // also of these: nothing limits them
  std::uint64_t bad_requests = 0;
  std::uint64_t store_failures = 0;
};

// The limit of one descriptor.
struct EnvoyApplied {
  enum class Kind : std::uint8_t { nothing, unlimited, counted };
  Kind kind = Kind::nothing;
  EnvoyCurrentLimit limit;                  // counted
  const rules::EnvoyLimit* rule = nullptr;  // null: no limit, or the request's own
  std::uint64_t sum = 0;                    // of the window's hits, including this request
};

// A request until it is counted.
struct EnvoyDeciding {
  std::array<EnvoyApplied, kEnvoyDescriptorsMax> applied{};
  std::size_t count = 0;
  store::Call call;  // a group for each counted descriptor
  std::shared_ptr<const EnvoySnapshot> snapshot;
  Now now;

  [[nodiscard]] std::span<EnvoyApplied> all() noexcept { return std::span{applied}.first(count); }
  [[nodiscard]] std::span<const EnvoyApplied> all() const noexcept {
    return std::span{applied}.first(count);
  }
};

// One request. Made once by the caller, and reused.
class EnvoyOp {
 public:
  EnvoyOp() = default;
  EnvoyOp(const EnvoyOp&) = delete;
  EnvoyOp& operator=(const EnvoyOp&) = delete;
  ~EnvoyOp() = default;

  // An error where envoyproxy/ratelimit returns one: without rules, domain or descriptors, and when
  // the store fails; also for more descriptors than a response has room for, and for a request's
  // own limit with an unknown unit. The response is then unusable. Only when the store fails may
  // some of the descriptors have been counted.
  Result<void> result;
  EnvoyResponse response;

  // Called once, by the worker, if the decider returned "later".
  void (*completed)(EnvoyOp&) noexcept = nullptr;
  void* owner = nullptr;

  [[nodiscard]] bool waiting() const noexcept { return deciding_ != nullptr; }

 private:
  friend class EnvoyDecider;

  EnvoyDeciding* deciding_ = nullptr;  // while it waits
  EnvoyDecider* worker_ = nullptr;
};

class EnvoyDecider {
 public:
  explicit EnvoyDecider(store::Store& store) noexcept : store_(store) {}

  // For requests from now on. Names in responses live as long as the snapshot they come from.
  void use(std::shared_ptr<const EnvoySnapshot> snapshot) noexcept {
    snapshot_ = std::move(snapshot);
  }

  // The op keeps no views into the request.
  store::Completion should_rate_limit(EnvoyOp& op, const EnvoyRequest& request, Now now) noexcept;
  // The caller left while the op was waiting: what it counted is given back.
  void abandon(EnvoyOp& op, Now now) noexcept;

  [[nodiscard]] const EnvoyCounters& counters() const noexcept { return counters_; }

 private:
  [[nodiscard]] Result<void> check(const EnvoyRequest& request) const noexcept;
  [[nodiscard]] EnvoyApplied applied(std::string_view domain,
                                     const EnvoyDescriptor& descriptor) const noexcept;
  void find_limits(EnvoyDeciding& deciding, const EnvoyRequest& request) noexcept;
  static void drop_replaced(EnvoyDeciding& deciding) noexcept;
  void collect_checks(EnvoyDeciding& deciding, const EnvoyRequest& request) const noexcept;
  static void later(store::Call& call) noexcept;
  void conclude(EnvoyOp& op, EnvoyDeciding& deciding) noexcept;
  [[nodiscard]] static Result<void> read_sums(EnvoyDeciding& deciding) noexcept;
  [[nodiscard]] static EnvoyCode overall(const EnvoyModes& modes,
                                         std::span<const EnvoyApplied> applied,
                                         std::span<const EnvoyStatus> statuses) noexcept;

  store::Store& store_;
  std::shared_ptr<const EnvoySnapshot> snapshot_;
  Pool<EnvoyDeciding> pool_;
  EnvoyCounters counters_;
};

}  // namespace sluice::engine
