#include "identity/ip_range_set.h"

#include <algorithm>
#include <cstddef>

namespace sluice::identity {
namespace {

template <class Number>
Number number_of(const IpAddress& address) noexcept {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) number = number << 8U | address.bytes[i];
  return number;
}

template <class Intervals, class Number>
void add(Intervals& intervals, Number first, unsigned prefix_bits) {
  // Shifting by all bits there are is undefined, hence two steps.
  const unsigned kept = std::min<unsigned>(prefix_bits, 8 * sizeof(Number));
  const Number behind = kept == 0 ? ~Number{0} : static_cast<Number>(~Number{0} >> (kept - 1) >> 1);
  intervals.push_back({first, static_cast<Number>(first | behind)});
}

// The wider of two that begin alike comes first, so that the narrower one follows it and goes.
template <class Intervals>
void drop_nested(Intervals& intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.last > b.last;
  });
  Intervals kept;
  for (const auto& one : intervals) {
    if (kept.empty() || one.first > kept.back().last) kept.push_back(one);
  }
  intervals = std::move(kept);
}

template <class Intervals, class Number>
bool is_inside(const Intervals& intervals, Number number) noexcept {
  const auto after =
      std::upper_bound(intervals.begin(), intervals.end(), number,
                       [](const Number& wanted, const auto& one) { return wanted < one.first; });
  return after != intervals.begin() && number <= std::prev(after)->last;
}

}  // namespace

IpRangeSet::IpRangeSet(std::span<const IpRange> ranges) {
  for (const IpRange& range : ranges) {
    if (range.first.is_v4) {
      add(v4_, number_of<std::uint32_t>(range.first), range.prefix_bits);
    } else {
      add(v6_, number_of<Uint128>(range.first), range.prefix_bits);
    }
  }
  drop_nested(v4_);
  drop_nested(v6_);
}

bool IpRangeSet::contains(const IpAddress& address) const noexcept {
  return address.is_v4 ? is_inside(v4_, number_of<std::uint32_t>(address))
                       : is_inside(v6_, number_of<Uint128>(address));
}

}  // namespace sluice::identity
