// How often one address may fail to authenticate before its tokens are no longer verified.
//
// Checking a forged signature costs a hundred times what a request costs otherwise, so a client
// that sends nothing else must not decide how this process spends its time. This guards the
// worker's own time and is no limit of the configuration: it needs no exact count across workers or
// nodes, and it stands below the engine and its stores. So it is a small table of
// its own, with one word of GCRA per address, in fixed memory. IPv6 counts by /64.
//
// Each address has four places. When all are taken, the failures of the address that failed least
// are forgotten early, which is counted. One thread: each worker has its own.
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

  // Addresses whose failures were forgotten to make room for those of another one.
  [[nodiscard]] std::uint64_t forgotten() const noexcept { return forgotten_; }

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
  std::uint64_t forgotten_ = 0;
};

}  // namespace sluice::identity
