#include "identity/ip_range_set.h"

#include <algorithm>

namespace sluice::identity {
namespace {

// The wider of two ranges that begin alike comes first, so that the narrower one follows it.
bool comes_before(const IpRange& a, const IpRange& b) noexcept {
  if (a.first != b.first) return a.first < b.first;
  return a.prefix_bits < b.prefix_bits;
}

std::vector<IpRange> without_nested(std::vector<IpRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), comes_before);
  std::vector<IpRange> kept;
  for (const IpRange& range : ranges) {
    if (kept.empty() || !kept.back().contains(range.first)) kept.push_back(range);
  }
  return kept;
}

}  // namespace

IpRangeSet::IpRangeSet(std::span<const IpRange> ranges) {
  for (const IpRange& range : ranges) (range.first.is_v4 ? v4_ : v6_).push_back(range);
  v4_ = without_nested(std::move(v4_));
  v6_ = without_nested(std::move(v6_));
}

bool IpRangeSet::contains(const IpAddress& address) const noexcept {
  const std::vector<IpRange>& ranges = address.is_v4 ? v4_ : v6_;
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), address,
                       [](const IpAddress& a, const IpRange& b) { return a < b.first; });
  return after != ranges.begin() && std::prev(after)->contains(address);
}

}  // namespace sluice::identity
