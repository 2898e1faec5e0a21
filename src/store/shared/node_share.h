// A node's share of a limit: what it may admit by itself while the authority cannot be reached.
#pragma once

#include <sluice/limit.h>

#include <cstdint>
#include <optional>

namespace sluice::store {

// 1/nodes of the amount and of a burst, rounded down; where that is below 1, one unit in so many
// periods. So the shares of all nodes together never exceed the limit, but for a burst below the
// number of nodes, of which each node needs 1. With one node the share is the limit.
//
// Nothing where no share can be that small: slots of `concurrency` are not divisible in time, and
// the longest period is 366 days. Such a limit follows `on_failure: closed`.
//
// Requires a limit that core::compile() accepts, and at least one node.
[[nodiscard]] std::optional<Limit> share_of(const Limit& limit, std::uint32_t nodes);

}  // namespace sluice::store
