// A thread's cache in front of the store, so that threads do not contend for a hot key's line.
//
// Cached rejections. A rejected key stays rejected until its first unit is back, so for up to
// kRefusedFor a repeated request is rejected from here, as the table would, without touching it.
// The cache has rejections of cost 1 that only a refund, a reset or an edit could shorten. These
// raise the store's epoch, which voids the cache.
//
// Leases, for limits with `thread_leases`. The worker takes some units ahead, in one charge, spends
// them by itself for up to kLeaseFor and gives back the rest when it next uses the entry. Units are
// charged up to kLeaseFor before they are spent, so a limit's bound holds in windows that are
// shorter than its period by that much. Units leased to other workers are missing: a request may be
// rejected although up to lease_size * workers units are left, and somewhat more with buckets,
// where giving back out of order returns less than was taken. Leased requests have no receipt. A
// new epoch drops leases without giving them back, since the charge may be gone. So limits with
// refunds take no leases, which LocalAuthority ensures.
//
// One thread. No call allocates.
#pragma once

#include "store/local/local_store.h"

#include <array>
#include <cstdint>

namespace sluice::store {

class ThreadCache {
 public:
  static constexpr Nanos kRefusedFor = std::chrono::milliseconds{25};
  static constexpr Nanos kLeaseFor = std::chrono::milliseconds{1};

  // `workers`: how many run in parallel.
  ThreadCache(LocalStore& store, unsigned workers) noexcept : store_(&store), workers_(workers) {}

  struct Use {
    bool remember_refusals = true;  // false where a refund may come at any time
    bool thread_leases = false;
  };
  void decide(const Check& check, Use use, Now now, Answer& answer) noexcept;
  [[nodiscard]] Answer decide(const Check& check, Use use, Now now) noexcept {
    Answer answer;
    decide(check, use, now, answer);
    return answer;
  }

  // How many units a worker takes ahead. 0: the limit is too small to lease, and stays exact.
  [[nodiscard]] static Cost lease_size(const Limit& limit, unsigned workers) noexcept;

  struct Counters {
    std::uint64_t refused_again = 0;  // rejected from the cache
    std::uint64_t leased = 0;         // spent from a lease
  };
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

 private:
  static constexpr std::size_t kEntries = 64;

  struct Refusal {
    Digest key;
    LimitNumber limit = 0;
    std::uint32_t epoch = 0;
    MonoTime seen;
    MonoTime until;  // at most kRefusedFor after it was seen
    Decision decision;
  };
  struct Lease {
    Digest key;
    LimitNumber limit = 0;
    std::uint32_t epoch = 0;
    Cost left = 0;
    MonoTime taken;
    Decision decision;  // when it was taken
    Charge charge;
  };

  [[nodiscard]] static std::size_t place_of(const Digest& key) noexcept {
    return static_cast<std::size_t>(key.low >> 20U) % kEntries;
  }
  [[nodiscard]] const Refusal* refusal(const Check& check, Now now) const noexcept;
  void remember(const Check& check, const Decision& refused, std::uint32_t epoch, Now now) noexcept;
  [[nodiscard]] Answer decide_leased(const Check& check, Now now) noexcept;
  void give_back(Lease& lease, Now now) noexcept;

  LocalStore* store_;
  unsigned workers_;
  Counters counters_;
  std::array<Refusal, kEntries> refusals_{};
  std::array<Lease, kEntries> leases_{};
};

}  // namespace sluice::store
