#include "frontend/gateway/connection_counts.h"

#include <random>

namespace sluice::gateway {
namespace {

DigestSecret random_secret() {
  std::random_device device;
  const auto word = [&] { return std::uint64_t{device()} << 32U | device(); };
  const std::uint64_t first = word();
  return {.first = first, .second = word()};
}

}  // namespace

ConnectionCounts::ConnectionCounts() : hash_{random_secret()} {
  for (Shard& shard : shards_) shard.counts = decltype(shard.counts){0, hash_};
}

bool ConnectionCounts::add(const IpAddress& address, std::uint32_t most) {
  const IpAddress network = network_of(address);
  Shard& shard = shards_[number_of(network)];
  const std::lock_guard lock{shard.mutex};
  std::uint32_t& count = shard.counts[network];
  if (most > 0 && count >= most) return false;
  ++count;
  return true;
}

void ConnectionCounts::remove(const IpAddress& address) noexcept {
  const IpAddress network = network_of(address);
  Shard& shard = shards_[number_of(network)];
  const std::lock_guard lock{shard.mutex};
  const auto found = shard.counts.find(network);
  if (found != shard.counts.end() && --found->second == 0) shard.counts.erase(found);
}

std::uint32_t ConnectionCounts::of(const IpAddress& address) const noexcept {
  const IpAddress network = network_of(address);
  const Shard& shard = shards_[number_of(network)];
  const std::lock_guard lock{shard.mutex};
  const auto found = shard.counts.find(network);
  return found != shard.counts.end() ? found->second : 0;
}

std::size_t ConnectionCounts::addresses() const noexcept {
  std::size_t all = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock{shard.mutex};
    all += shard.counts.size();
  }
  return all;
}

}  // namespace sluice::gateway
