// Whether anybody is there: one connection before a run, so that a wrong address is told at once.
#pragma once

#include "cli/load/http/plan.h"
#include "net/socket_address.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

namespace sluice::cli {

// The first address of the target's host on which a connection stands, TLS included. Blocks for up
// to the timeout per address, and for the lookup of a name.
[[nodiscard]] Parsed<net::SocketAddress> reach(const HttpPlan& plan, const Clock& clock);

}  // namespace sluice::cli
