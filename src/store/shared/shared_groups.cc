// What becomes of a group of a call: see shared_store.h.
#include "store/shared/share_key.h"
#include "store/shared/shared_store.h"

#include <algorithm>

namespace sluice::store {
namespace {

// A share is smaller than its limit, so a cost that it can never hold fits later.
void forgive_never(const SharedTerms* terms, const Check& check, Decision& decision) noexcept {
  if (decision.verdict != Verdict::never || terms == nullptr) return;
  if (check.cost <= terms->limit->capacity) decision.verdict = Verdict::rejected;
}

}  // namespace

// ---- the table ----------------------------------------------------------------------------------

// Local groups, and shares in place of those that the authority failed for.
bool SharedStore::decide_in_table(Flight& flight, bool probe, Now now) noexcept {
  const Call& call = *flight.call;
  std::size_t count = 0;
  for (std::size_t at = 0; at < call.group_count; ++at) {
    count += table_checks_of(flight, at, count);
  }
  if (count == 0) return true;
  const auto checks = std::span{table_checks_}.first(count);
  if (probe) std::ranges::for_each(checks, [](Check& check) { check.probe = true; });
  const bool admitted = table_.decide_all(checks, now, std::span{table_answers_}.first(count));
  for (std::size_t at = 0, from = 0; at < call.group_count; ++at) {
    if (flight.standings[at] != Standing::local && flight.standings[at] != Standing::share) {
      continue;
    }
    take_table_answers(flight, at, from);
    from += call.groups[at].count;
  }
  return admitted;
}

// A group by itself, if there is nothing to wait for.
void SharedStore::decide_apart(Flight& flight, std::size_t at, Now now) noexcept {
  Group& group = flight.call->groups[at];
  const Standing standing = flight.standings[at];
  switch (standing) {
    case Standing::local:
    case Standing::share: {
      const std::size_t count = table_checks_of(flight, at, 0);
      (void)table_.decide_all(std::span{table_checks_}.first(count), now,
                              std::span{table_answers_}.first(count));
      take_table_answers(flight, at, 0);
      break;
    }
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
    case Standing::admitted:
    case Standing::rejected: return;
  }
  const bool admitted =
      group.verdict == GroupVerdict::admitted || group.verdict == GroupVerdict::open;
  let_go(flight, at, admitted, now);
}

// How many of a group's checks the table has to decide.
std::size_t SharedStore::table_checks_of(const Flight& flight, std::size_t at,
                                         std::size_t to) noexcept {
  const Standing standing = flight.standings[at];
  if (standing != Standing::local && standing != Standing::share) return 0;
  const Group& group = flight.call->groups[at];
  for (std::size_t i = group.first; i < std::size_t{group.first} + group.count; ++i) {
    const Check& check = flight.call->checks[i];
    table_checks_[to++] =
        standing == Standing::share ? share_check(check, flight.shares[i]) : check;
  }
  return group.count;
}

void SharedStore::take_table_answers(Flight& flight, std::size_t at, std::size_t from) noexcept {
  Call& call = *flight.call;
  Group& group = call.groups[at];
  const bool is_share = flight.standings[at] == Standing::share;
  const auto checks = checks_of(call, group);
  const auto answers = answers_of(call, group);
  bool has_room = true;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    answers[i] = table_answers_[from + i];
    has_room &= answers[i].decision.allowed();
    if (is_share) forgive_never(limits_.find(checks[i].limit), checks[i], answers[i].decision);
  }
  group.verdict = has_room ? GroupVerdict::admitted : GroupVerdict::rejected;
  group.source = is_share ? Source::share : Source::local;
}

// ---- the authority ------------------------------------------------------------------------------

bool SharedStore::ask(Flight& flight, Index index, std::size_t at, Now now) noexcept {
  const Call& call = *flight.call;
  const auto checks = checks_of(call, call.groups[at]);
  const Index place = asked_.take();
  if (place == 0) {
    ++shared_counts_.no_room;
    return false;
  }
  Asked& asked = asked_[place];
  asked.checks.assign(checks.begin(), checks.end());
  asked.key = checks[0].group_key();
  asked.since = now.mono;
  asked.flight = index;
  asked.group = static_cast<std::uint8_t>(at);
  asked.is_late = asked.is_kept = false;
  asked.refunded = 0;
  asked.if_charged = Asked::IfCharged::give_back;

  std::array<AuthorityCheck, kCallChecksMax> to_ask;
  bool knows_all = true;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const SharedTerms* const terms = limits_.find(checks[i].limit);
    knows_all &= terms != nullptr;
    to_ask[i] = {.limit = terms != nullptr ? terms->limit.get() : nullptr,
                 .salt = checks[i].salt,
                 .cost = checks[i].cost,
                 .change = checks[i].change,
                 .probe = checks[i].probe};
  }
  const bool sent = knows_all && authority_.decide(asked_.name_of(place), asked.key,
                                                   std::span{to_ask}.first(checks.size()), now);
  if (!sent) {
    if (knows_all) note_failure(asked, now);
    asked_.release(place);
    return false;
  }
  ++shared_counts_.asked;
  flight.asked[at] = place;
  return true;
}

void SharedStore::replied(AuthorityTicket ticket, AuthorityOutcome outcome,
                          std::span<Answer> answers, Now now) noexcept {
  if ((ticket & kHoldingTickets) != 0) return holdings_.replied(ticket, outcome, answers, now);
  if ((ticket & kSettleTickets) != 0) {
    --settling_;
    const bool good = outcome != AuthorityOutcome::failed;
    if (good) breakers_[ticket & 0xffffU].succeeded();
    return;
  }
  const Index place = asked_.find(ticket);
  if (place == 0 || asked_[place].is_kept) return;
  Asked& asked = asked_[place];
  for (std::size_t i = 0; i < answers.size(); ++i) answers[i].charge.limit = asked.checks[i].limit;
  if (outcome == AuthorityOutcome::failed) {
    note_failure(asked, now);
  } else {
    note_success(asked, now);
  }
  if (outcome == AuthorityOutcome::rejected) remember_rejection(asked, answers);
  if (asked.flight != 0) {
    answered(flights_[asked.flight], asked, outcome, answers, now);
  } else if (answered_late(asked, outcome, answers, now)) {
    return keep_late(place);
  }
  asked_.release(place);
}

// In time, or at least before the call was completed: then the truth goes before a share.
void SharedStore::answered(Flight& flight, Asked& asked, AuthorityOutcome outcome,
                           std::span<const Answer> answers, Now now) noexcept {
  Call& call = *flight.call;
  const std::size_t at = asked.group;
  Group& group = call.groups[at];
  const Index index = asked.flight;
  flight.asked[at] = 0;
  if (flight.standings[at] == Standing::waiting) {
    --flight.waiting;
  } else if (outcome != AuthorityOutcome::done && outcome != AuthorityOutcome::rejected) {
    return;
  }
  switch (outcome) {
    case AuthorityOutcome::done:
    case AuthorityOutcome::rejected: {
      const bool admitted = outcome == AuthorityOutcome::done;
      std::ranges::copy(answers, answers_of(call, group).begin());
      group.verdict = admitted ? GroupVerdict::admitted : GroupVerdict::rejected;
      group.source = Source::exact;
      flight.standings[at] = admitted ? Standing::admitted : Standing::rejected;
      flight.is_rejected |= !admitted && call.kind == Call::Kind::all_or_nothing;
      break;
    }
    case AuthorityOutcome::applied_before:  // of no decision
    case AuthorityOutcome::clocks_differ:
    case AuthorityOutcome::failed:
      ++shared_counts_.failed;
      fall_back(flight, at, now);
      break;
  }
  if (flight.waiting == 0 || flight.is_rejected) make_ready(index);
}

// True: its request may still be refunded, and what was charged with it.
bool SharedStore::answered_late(Asked& asked, AuthorityOutcome outcome,
                                std::span<const Answer> answers, Now now) noexcept {
  ++shared_counts_.late_replies;
  const bool is_charged = outcome == AuthorityOutcome::done;
  if (asked.if_charged == Asked::IfCharged::give_back) {
    if (is_charged) give_back_to_authority(asked.checks, answers, now);
    return false;
  }
  asked.charges.clear();
  for (std::size_t i = 0; i < asked.checks.size(); ++i) {
    const Check& check = asked.checks[i];
    const bool is_refunded = (asked.refunded >> i & 1U) != 0;
    if (is_charged) asked.charges.push_back(answers[i].charge);
    if (is_charged && is_refunded) {
      give_back_to_authority({&check, 1}, answers.subspan(i, 1), now);
    } else if (!is_charged && !is_refunded) {
      add_settlement(check, check.cost, now);
    }
  }
  return is_charged;
}

// The oldest one makes room: its charge stays.
void SharedStore::keep_late(Index place) noexcept {
  if (late_count_ == late_max_) {
    const Index oldest = late_.first();
    late_.remove(oldest);
    asked_.release(oldest);
  } else {
    ++late_count_;
  }
  asked_[place].is_kept = true;
  late_.push_back(place);
}

// The group of a call that is over, one way or another.
void SharedStore::let_go(Flight& flight, std::size_t at, bool admitted, Now now) noexcept {
  const Standing standing = flight.standings[at];
  const bool owes = admitted && (standing == Standing::share || standing == Standing::open);
  const Index place = flight.asked[at];
  flight.asked[at] = 0;
  if (place != 0) {
    asked_[place].flight = 0;
    if (!owes) return;
    asked_[place].if_charged = Asked::IfCharged::replaces_settlement;
    // By this name refund() finds it. The table does not read the edition.
    for (Answer& answer : answers_of(*flight.call, flight.call->groups[at])) {
      answer.charge.edition = static_cast<std::int64_t>(asked_.name_of(place));
    }
  } else if (owes) {
    const Call& call = *flight.call;
    for (const Check& check : checks_of(call, call.groups[at])) {
      add_settlement(check, check.cost, now);
    }
  }
}

// ---- what is learnt from a reply ----------------------------------------------------------------

bool SharedStore::rejections_last(std::span<const Check> checks) const noexcept {
  return std::ranges::all_of(checks, [this](const Check& check) {
    const SharedTerms* const terms = limits_.find(check.limit);
    return terms != nullptr && terms->rejections_last() && !check.may_be_refunded;
  });
}

void SharedStore::remember_rejection(const Asked& asked, std::span<const Answer> answers) noexcept {
  if (rejections_last(asked.checks)) {
    denied_.remember(asked.key, asked.checks, answers, asked.since);
  }
}

void SharedStore::note_success(const Asked& asked, Now now) noexcept {
  if (!asked.is_late && now.mono - asked.since <= budget_) breaker_of(asked.key).succeeded();
}

// Once for each group.
void SharedStore::note_failure(Asked& asked, Now now) noexcept {
  if (asked.is_late) return;
  asked.is_late = true;
  if (breaker_of(asked.key).failed(now, random_)) ++shared_counts_.breaker_opened;
}

}  // namespace sluice::store
