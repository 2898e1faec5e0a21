#include "cli/replay/replayer.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace sluice::cli {
namespace {

// A trace knows one time; both clocks show it.
Now trace_now(WallTime at) noexcept { return {.mono = MonoTime{at.time_since_epoch()}}; }

}  // namespace

Decision Replayer::decide(const TraceRequest& request) {
  settle_flights(request.at);
  const core::Outcome outcome =
      cells_[request.key].decide(limit_, trace_now(request.at), request.cost);
  if (outcome.receipt.cost > 0) take_off(request, outcome.receipt);
  return outcome.decision;
}

WallTime Replayer::next_due(WallTime now, WallTime end) const noexcept {
  return std::min(end, now + std::get<core::ConcurrencyLimit>(limit_).slot_ttl / 2);
}

void Replayer::take_off(const TraceRequest& request, core::Receipt lease) {
  if (!std::holds_alternative<core::ConcurrencyLimit>(limit_) || !request.duration) return;
  const bool endless = *request.duration > WallTime::max() - request.at;
  const WallTime end = endless ? WallTime::max() : request.at + *request.duration;
  flights_.push({.due = next_due(request.at, end), .end = end, .key = request.key, .lease = lease});
}

// The counters are not read between two requests of a trace, so everything that fell due since the
// last one happens now. Holders that would have renewed many times renew once; leases that would
// have expired without those renewals are taken again.
void Replayer::settle_flights(WallTime now) {
  while (!flights_.empty() && flights_.top().due <= now) {
    Flight flight = flights_.top();
    flights_.pop();
    core::Cell& cell = cells_[flight.key];
    if (flight.end <= now) {
      cell.refund(limit_, trace_now(now), flight.lease, flight.lease.cost);
      continue;
    }
    const core::Cost held = flight.lease.cost;
    flight.lease = cell.renew(limit_, trace_now(now), flight.lease);
    if (flight.lease.cost == 0) flight.lease = cell.charge(limit_, trace_now(now), held).receipt;
    flight.due = next_due(now, flight.end);
    flights_.push(std::move(flight));
  }
}

}  // namespace sluice::cli
