#include "store/shared/node_share.h"

#include <sluice/core/compiled_limit.h>
#include <sluice/int128.h>

#include <algorithm>

namespace sluice::store {
namespace {

using std::chrono::hours;

// The longest there is of each.
Nanos length_of(CalendarUnit unit) noexcept {
  switch (unit) {
    case CalendarUnit::day: return hours{25};
    case CalendarUnit::week: return hours{24 * 7 + 1};
    case CalendarUnit::month: return hours{24 * 31 + 1};
    case CalendarUnit::year: break;
  }
  return core::kPeriodMax;
}

// One unit in so many periods. Windows of several calendar units do not exist, so they become
// windows of that length.
std::optional<Limit> one_in(Limit limit, std::int64_t periods) {
  if (limit.algorithm == Algorithm::concurrency) return std::nullopt;
  if (limit.unit) {
    limit.period = length_of(*limit.unit);
    limit.align = Align::epoch;
    limit.unit.reset();
    limit.timezone.reset();
  }
  if (limit.period > core::kPeriodMax / periods) return std::nullopt;
  limit.amount = 1;
  limit.period *= periods;
  if (limit.bucket_width) *limit.bucket_width *= periods;
  return limit;
}

}  // namespace

std::optional<Limit> share_of(const Limit& limit, std::uint32_t nodes) {
  if (nodes <= 1) return limit;
  std::optional<Limit> share = limit;
  if (core::is_bucket(limit.algorithm)) {
    share->burst = std::max<std::uint64_t>(core::capacity(limit) / nodes, 1);
  }
  share->amount = limit.amount / nodes;
  if (share->amount == 0) {
    share = one_in(*std::move(share),
                   ceil_div(std::int64_t{nodes}, static_cast<std::int64_t>(limit.amount)));
  }
  if (!share || !core::compile(*share)) return std::nullopt;
  return share;
}

}  // namespace sluice::store
