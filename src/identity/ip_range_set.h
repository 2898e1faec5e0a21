// Ranges of addresses, asked on every request whether they contain one.
//
// Ranges are nested or apart, never half overlapping, so dropping the nested ones leaves intervals
// in one order: a lookup is a binary search over numbers. Immutable, so threads may share it.
#pragma once

#include <sluice/address.h>
#include <sluice/int128.h>

#include <cstdint>
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
  // First and last address as numbers; sorted, disjoint.
  template <class Number>
  struct Interval {
    Number first = 0;
    Number last = 0;
  };
  std::vector<Interval<std::uint32_t>> v4_;
  std::vector<Interval<Uint128>> v6_;
};

}  // namespace sluice::identity
