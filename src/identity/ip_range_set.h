// Ranges of addresses, asked on every request whether they contain one.
//
// Ranges are nested or apart, never half overlapping, so dropping the nested ones leaves intervals
// in one order: a lookup is a binary search. Immutable, so threads may share it.
#pragma once

#include <sluice/address.h>

#include <span>
#include <vector>

namespace sluice::identity {

class IpRangeSet {
 public:
  IpRangeSet() = default;
  explicit IpRangeSet(std::span<const IpRange> ranges);

  [[nodiscard]] bool contains(const IpAddress& address) const noexcept;
  [[nodiscard]] bool empty() const noexcept { return v4_.empty() && v6_.empty(); }

 private:
  // Sorted by their first address, disjoint.
  std::vector<IpRange> v4_;
  std::vector<IpRange> v6_;
};

}  // namespace sluice::identity
