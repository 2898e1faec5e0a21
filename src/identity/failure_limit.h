// How often one address may fail to prove something before it is no longer listened to.
//
// Checking a forged signature costs a hundred times as much as the rest of a request, so a client
// that sends only forgeries must not use up this process. This is a guard for the worker's own
// time, not a configured limit: it needs no exact count across workers or nodes, and it is below
// the engine and its stores. So it is a small table of its own, with one word of GCRA per address,
// in fixed memory. IPv6 counts by /64.
//
// Each address has four places. When all are taken, the address with the least usage is evicted.
// One thread: each worker has its own.
#pragma once

#include "base/digest.h"
#include <sluice/address.h>
#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::identity {

struct FailureLimits {
  std::uint32_t burst = 20;                  // failures at once; 0: no limit
  Nanos interval = std::chrono::seconds{1};  // until one more is allowed
  std::size_t addresses_max = 1024;          // rounded up to a power of two
};

class FailureLimit {
 public:
  FailureLimit(const FailureLimits& limits, DigestSecret secret);

  // Whether one more failure of this address could be afforded.
  [[nodiscard]] bool allows(const IpAddress& address, MonoTime now) const noexcept;
  void charge(const IpAddress& address, MonoTime now) noexcept;

 private:
  static constexpr std::size_t kWays = 4;
  struct Place {
    std::uint64_t address = 0;  // half a digest; two addresses in one place is no misfortune
    MonoTime drained;           // when its failures are forgotten
  };
  [[nodiscard]] std::uint64_t tag(const IpAddress& address) const noexcept;
  [[nodiscard]] std::size_t first(std::uint64_t tag) const noexcept {
    return (tag & (places_.size() / kWays - 1)) * kWays;
  }

  FailureLimits limits_;
  KeyHasher hasher_;
  std::vector<Place> places_;
};

}  // namespace sluice::identity
