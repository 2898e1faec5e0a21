#include "frontend/gateway/upstream_addresses.h"

#include "frontend/gateway/gateway_options.h"

#include <algorithm>
#include <utility>

namespace sluice::gateway {

bool UpstreamAddress::failed(const UpstreamOptions& options, MonoTime now) noexcept {
  if (++failures_in_a_row_ < options.max_consecutive_failures) return false;
  failures_in_a_row_ = 0;
  ejected_until_ = now + options.ejection_time;
  return options.ejection_time > Nanos{0} && !std::exchange(awaits_recovery_, true);
}

void UpstreamAddresses::assign(const net::Addresses& found, std::uint16_t port) {
  std::vector<Shared> now;
  now.reserve(found.size());
  for (const IpAddress& address : found) {
    now.push_back(at(net::SocketAddress::of(address, port)));
  }
  all_ = std::move(now);
}

UpstreamAddresses::Shared UpstreamAddresses::at(const net::SocketAddress& where) const {
  const auto known = std::ranges::find_if(
      all_, [&](const Shared& one) { return one->where() && one->where()->ip() == where.ip(); });
  return known != all_.end() ? *known : std::make_shared<UpstreamAddress>(where);
}

const UpstreamAddresses::Shared& UpstreamAddresses::next(const UpstreamAddress* except,
                                                         MonoTime now) noexcept {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const std::size_t number = (next_ + i) % all_.size();
    const Shared& one = all_[number];
    if (one.get() == except || one->is_ejected(now)) continue;
    next_ = number + 1;
    return one;
  }
  return *std::ranges::min_element(all_, {}, [except](const Shared& one) {
    return std::pair{one.get() == except, one->ejected_until()};
  });
}

bool UpstreamAddresses::has_another(const UpstreamAddress* except, MonoTime now) const noexcept {
  return std::ranges::any_of(
      all_, [&](const Shared& one) { return one.get() != except && !one->is_ejected(now); });
}

MonoTime UpstreamAddresses::ejected_until() const noexcept {
  return (*std::ranges::min_element(all_, {}, &UpstreamAddress::ejected_until))->ejected_until();
}

std::size_t UpstreamAddresses::ejected(MonoTime now) const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(all_, [now](const Shared& one) { return one->is_ejected(now); }));
}

}  // namespace sluice::gateway
