#include "identity/failure_limit.h"

#include <algorithm>
#include <bit>
#include <string_view>

namespace sluice::identity {
namespace {

constexpr std::uint8_t kAddressKind = 2;  // tokens have the other one under this secret

}  // namespace

FailureLimit::FailureLimit(const FailureLimits& limits, DigestSecret secret)
    : limits_(limits),
      hasher_(KeyDigest{secret}, kAddressKind),
      places_(std::bit_ceil(std::max(limits.addresses_max, kWays))) {}

std::uint64_t FailureLimit::tag(const IpAddress& address) const noexcept {
  const std::size_t bytes = address.is_v4 ? 4 : 8;  // all, or the first 64 bits
  return hasher_.low({reinterpret_cast<const char*>(address.bytes.data()), bytes});
}

bool FailureLimit::allows(const IpAddress& address, MonoTime now) const noexcept {
  if (limits_.burst == 0) return true;
  const std::uint64_t client = tag(address);
  const Place* const places = places_.data() + first(client);
  const Place* const found =
      std::find_if(places, places + kWays, [&](const Place& one) { return one.address == client; });
  if (found == places + kWays) return true;
  return std::max(found->drained, now) + limits_.interval <= now + limits_.interval * limits_.burst;
}

void FailureLimit::charge(const IpAddress& address, MonoTime now) noexcept {
  const std::uint64_t client = tag(address);
  Place* const places = places_.data() + first(client);
  Place* place =
      std::find_if(places, places + kWays, [&](const Place& one) { return one.address == client; });
  if (place == places + kWays) {
    place = std::min_element(places, places + kWays,
                             [](const Place& a, const Place& b) { return a.drained < b.drained; });
    if (place->drained > now) ++forgotten_;
    *place = {client, now};
  }
  place->drained = std::max(place->drained, now) + limits_.interval;
}

}  // namespace sluice::identity
