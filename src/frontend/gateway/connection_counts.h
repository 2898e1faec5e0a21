// How many client connections each address has, over all workers of the process.
//
// An IPv6 address counts as its /64. Addresses are spread over shards, each with its own lock,
// which is taken when a connection opens or closes, never for a request. The hash is keyed, so that
// clients cannot choose addresses that share a shard. An address without connections has no entry:
// there are never more entries than connections. Thread-safe.
#pragma once

#include "base/digest.h"
#include <sluice/address.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace sluice::gateway {

// The unit that counts as one client. An IPv6 client has 2^64 addresses, and rules with `per: ip`
// count by the same 64 bits.
[[nodiscard]] inline IpAddress network_of(const IpAddress& address) noexcept {
  constexpr unsigned kNetworkBits = 64;
  return address.is_v4 ? address : address.masked(kNetworkBits);
}

class ConnectionCounts {
 public:
  ConnectionCounts();

  // Adds a connection of the address. False, and not counted, if it already has `most`. 0: any
  // number.
  [[nodiscard]] bool add(const IpAddress& address, std::uint32_t most);
  // Removes a connection that was added.
  void remove(const IpAddress& address) noexcept;
  [[nodiscard]] std::uint32_t of(const IpAddress& address) const noexcept;

  // Addresses with connections.
  [[nodiscard]] std::size_t addresses() const noexcept;

 private:
  struct Hash {
    DigestSecret secret;
    std::size_t operator()(const IpAddress& address) const noexcept {
      SipHash13 hash{secret};
      hash.append({reinterpret_cast<const char*>(address.bytes.data()), address.bytes.size()});
      return hash.finish().low;
    }
  };
  struct alignas(64) Shard {  // a cache line apart: workers do not slow down one another
    mutable std::mutex mutex;
    std::unordered_map<IpAddress, std::uint32_t, Hash> counts;
  };
  static constexpr std::size_t kShards = 64;

  // The upper bits: the shard's map uses the lower ones.
  [[nodiscard]] std::size_t number_of(const IpAddress& network) const noexcept {
    return hash_(network) >> 58U;
  }

  Hash hash_;
  std::array<Shard, kShards> shards_;
};

}  // namespace sluice::gateway
