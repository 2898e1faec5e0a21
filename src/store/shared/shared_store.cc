#include "store/shared/shared_store.h"

#include "store/shared/share_key.h"

#include <algorithm>

namespace sluice::store {

SharedStore::SharedStore(LocalStore& table, const SharedLimits& limits, Authority& authority,
                         const SharedStoreOptions& options)
    : table_(table),
      limits_(limits),
      authority_(authority),
      budget_(options.budget),
      random_(options.seed),
      local_(table, options.workers),
      flights_(options.calls_max),
      asked_(options.groups_max),
      late_max_(options.late_charges_max),
      denied_(options.denied_max),
      settlements_(options.settlements_max),
      holdings_(limits, authority, options.holdings_max, kHoldingTickets, own_counts_,
                shared_counts_) {
  breakers_.fill(Breaker{options.failures_max});
}

// ---- decisions ----------------------------------------------------------------------------------

// Numbers of local limits are below a power of two, and so are all their bits together.
Completion SharedStore::decide_all(Call& call, Now now) noexcept {
  static_assert((kLimitNumbers & (kLimitNumbers + 1)) == 0);
  LimitNumber bits = 0;
  for (const Check& check : call.asked()) bits |= check.limit;
  if (!is_shared(bits)) [[likely]]
    return local_.decide_all(call, now);
  return decide_shared(call, latest(now));
}

Completion SharedStore::decide_shared(Call& call, Now now) noexcept {
  ++own_counts_.decides;
  Flight elsewhere;  // where all places are taken: nothing can be asked
  const Index index = flights_.take();
  Flight& flight = index != 0 ? flights_[index] : elsewhere;
  flight = {};
  flight.call = &call;
  flight.deadline = now.mono + budget_;
  look_at_groups(flight, index, now);
  if (call.kind == Call::Kind::all_or_nothing && !flight.is_rejected) look_at_table(flight, now);
  if (!flight.is_rejected) ask_groups(flight, index, now);
  if (flight.waiting > 0 && !flight.is_rejected) {
    call.ticket = index;
    in_flight_.push_back(index);
    return Completion::later;
  }
  finish(flight, now);
  if (index != 0) flights_.release(index);
  return Completion::now;
}

void SharedStore::look_at_groups(Flight& flight, Index index, Now now) noexcept {
  Call& call = *flight.call;
  for (std::size_t at = 0; at < call.group_count; ++at) {
    call.groups[at].verdict = GroupVerdict::not_asked;
    call.groups[at].source = Source::local;
    flight.standings[at] = first_look(flight, index, at, now);
    const Standing standing = flight.standings[at];
    if (call.kind == Call::Kind::independent) {
      decide_apart(flight, at, now);
    } else if (standing == Standing::rejected || standing == Standing::closed) {
      flight.is_rejected = true;
      // The others are not looked at.
      for (std::size_t rest = at + 1; rest < call.group_count; ++rest) {
        call.groups[rest].verdict = GroupVerdict::not_asked;
        call.groups[rest].source = Source::local;
        flight.standings[rest] = Standing::to_ask;
      }
      return;
    }
  }
}

// What can be said of a group without asking.
SharedStore::Standing SharedStore::first_look(Flight& flight, Index index, std::size_t at,
                                              Now now) noexcept {
  Call& call = *flight.call;
  Group& group = call.groups[at];
  const auto checks = checks_of(call, group);
  if (!is_shared(checks[0].limit)) return Standing::local;
  const Digest key = checks[0].group_key();
  if (denied_.rejects(key, checks, now, answers_of(call, group))) {
    ++shared_counts_.denied_until;
    group.verdict = GroupVerdict::rejected;
    group.source = Source::denied_until;
    return Standing::rejected;
  }
  const SharedTerms* const terms = limits_.find(checks[0].limit);
  const bool knows_keys = terms != nullptr && terms->is_keyed;
  Breaker& breaker = breaker_of(key);
  if (knows_keys && index != 0 && !breaker.is_open()) return Standing::to_ask;

  flight.fell_back = true;
  if (!knows_keys) {
    ++shared_counts_.no_secret;
  } else if (index == 0) {
    ++shared_counts_.no_room;
  } else {
    ++shared_counts_.breaker;
    // The reply tells whether the authority is back; the request does not wait for it.
    if (breaker.take_probe(now, random_)) (void)ask(flight, index, at, now);
  }
  return on_failure(flight, at);
}

// Before the authority charges anything: what the table would reject need not be asked.
void SharedStore::look_at_table(Flight& flight, Now now) noexcept {
  const Call& call = *flight.call;
  const auto standings = std::span{flight.standings}.first(call.group_count);
  if (std::ranges::find(standings, Standing::to_ask) == standings.end()) return;
  flight.has_room = decide_in_table(flight, true, now);
  flight.is_rejected = !flight.has_room;
}

void SharedStore::ask_groups(Flight& flight, Index index, Now now) noexcept {
  const Call& call = *flight.call;
  for (std::size_t at = 0; at < call.group_count && !flight.is_rejected; ++at) {
    if (flight.standings[at] != Standing::to_ask) continue;
    if (ask(flight, index, at, now)) {
      flight.standings[at] = Standing::waiting;
      ++flight.waiting;
    } else {
      fall_back(flight, at, now);
    }
  }
}

// The authority has failed for this group.
void SharedStore::fall_back(Flight& flight, std::size_t at, Now now) noexcept {
  Call& call = *flight.call;
  flight.fell_back = true;
  flight.standings[at] = on_failure(flight, at);
  if (call.kind == Call::Kind::independent) {
    decide_apart(flight, at, now);
  } else if (flight.standings[at] == Standing::closed) {
    flight.is_rejected = true;
  }
}

// All limits of a group have the same terms. A limit without a share is closed: no share of it is
// small enough for all nodes to have one.
SharedStore::Standing SharedStore::on_failure(Flight& flight, std::size_t at) const noexcept {
  const Group& group = flight.call->groups[at];
  for (std::size_t i = group.first; i < std::size_t{group.first} + group.count; ++i) {
    const SharedTerms* const terms = limits_.find(flight.call->checks[i].limit);
    if (terms == nullptr) return Standing::closed;
    if (terms->sharing.on_failure == OnFailure::open) return Standing::open;
    flight.shares[i] = terms->share.load(std::memory_order_acquire);
    if (flight.shares[i] == SharedTerms::kNoShare) return Standing::closed;
  }
  return Standing::share;
}

// ---- completion ---------------------------------------------------------------------------------

void SharedStore::finish(Flight& flight, Now now) noexcept {
  Call& call = *flight.call;
  if (flight.fell_back) ++own_counts_.late;
  if (call.kind == Call::Kind::all_or_nothing) {
    call.admitted = !flight.is_rejected && decide_in_table(flight, false, now);
    for (std::size_t at = 0; at < call.group_count; ++at) {
      finish_group(flight, at, call.admitted, now);
    }
    return;
  }
  call.admitted = std::ranges::all_of(call.all_groups(), [](const Group& group) {
    return group.verdict == GroupVerdict::admitted || group.verdict == GroupVerdict::open;
  });
}

void SharedStore::finish_group(Flight& flight, std::size_t at, bool admitted, Now now) noexcept {
  Call& call = *flight.call;
  Group& group = call.groups[at];
  switch (flight.standings[at]) {
    case Standing::local:
    case Standing::share: {
      // The look counted the cost as if charged.
      const bool add_back = flight.has_room && flight.is_rejected;
      if (add_back) add_costs_back(checks_of(call, group), answers_of(call, group));
      break;
    }
    case Standing::admitted:
      if (!admitted) give_back(call, group, now);
      break;
    case Standing::open:
      group.verdict = GroupVerdict::open;
      group.source = Source::open;
      break;
    case Standing::closed:
      group.verdict = GroupVerdict::closed;
      group.source = Source::closed;
      break;
    case Standing::to_ask:
    case Standing::waiting:
    case Standing::rejected: break;
  }
  let_go(flight, at, admitted, now);
}

void SharedStore::make_ready(Index index) noexcept {
  Flight& flight = flights_[index];
  if (flight.is_ready) return;
  flight.is_ready = true;
  in_flight_.remove(index);
  ready_.push_back(index);
}

// The budget is over.
void SharedStore::expire(Index index, Now now) noexcept {
  Flight& flight = flights_[index];
  for (std::size_t at = 0; at < flight.call->group_count; ++at) {
    if (flight.standings[at] != Standing::waiting) continue;
    ++shared_counts_.deadline;
    note_failure(asked_[flight.asked[at]], now);
    fall_back(flight, at, now);
  }
  flight.waiting = 0;
  make_ready(index);
}

// A completed caller may ask for more, or cancel another call that is ready.
void SharedStore::complete_ready(Now now) noexcept {
  while (!ready_.empty()) {
    const Index index = ready_.first();
    ready_.remove(index);
    Flight& flight = flights_[index];
    Call& call = *flight.call;
    finish(flight, now);
    flights_.release(index);
    call.ticket = 0;
    if (call.completed != nullptr) call.completed(call);
  }
}

void SharedStore::cancel(Call& call, Now now) noexcept {
  const Index index = call.ticket;
  if (index == 0) return;
  now = latest(now);
  call.ticket = 0;
  Flight& flight = flights_[index];
  for (std::size_t at = 0; at < call.group_count; ++at) {
    const Standing standing = flight.standings[at];
    const bool is_charged =
        standing == Standing::admitted ||
        (call.kind == Call::Kind::independent && call.groups[at].verdict == GroupVerdict::admitted);
    if (is_charged) give_back(call, call.groups[at], now);
    let_go(flight, at, false, now);
  }
  (flight.is_ready ? ready_ : in_flight_).remove(index);
  flights_.release(index);
}

// ---- the worker's loop --------------------------------------------------------------------------

void SharedStore::advance(Now now) noexcept {
  last_turn_ = latest(now);
  authority_.advance(now, *this);
  while (!in_flight_.empty() && flights_[in_flight_.first()].deadline <= now.mono) {
    expire(in_flight_.first(), now);
  }
  complete_ready(now);
  settle(now);
  authority_.flush();  // last: completed callers ask for more
}

MonoTime SharedStore::wake_at() const noexcept {
  constexpr Nanos kSettleAgain = std::chrono::milliseconds{10};
  MonoTime at = authority_.wake_at();
  if (!in_flight_.empty()) at = std::min(at, flights_[in_flight_.first()].deadline);
  if (!settlements_.empty()) at = std::min(at, last_turn_.mono + kSettleAgain);
  return at;
}

void SharedStore::wait() noexcept { advance(authority_.wait(wake_at())); }

const StoreCounts& SharedStore::counts() const noexcept {
  const StoreCounts& local = local_.counts();
  all_counts_ = own_counts_;
  all_counts_.decides += local.decides;
  all_counts_.charges += local.charges;
  all_counts_.refunds += local.refunds;
  all_counts_.renewals += local.renewals;
  all_counts_.late += local.late;
  all_counts_.charges_unrefundable += local.charges_unrefundable;
  return all_counts_;
}

}  // namespace sluice::store
