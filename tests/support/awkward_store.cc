#include "support/awkward_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

namespace sluice::testing {
namespace {

using store::Answer;
using store::Call;
using store::Charge;
using store::Check;
using store::Completion;
using store::Cost;
using store::Group;
using store::GroupVerdict;
using store::Holding;
using store::Source;

// Marks of handles: of charges that were handed out, and of holdings that are over.
constexpr std::int64_t kHandle = 0x68'61'6e'64'6c'65;
constexpr std::uint32_t kVoid = 0xdead;
constexpr std::uint32_t kHeld = 0xe1d;
constexpr std::uint32_t kInFlight = 0xf1;

// A share has a counter of its own, beside that of a local limit of the same key.
constexpr std::uint64_t kShareSalt = 0x5348'4152'4521'0001;

bool is_rejected(GroupVerdict verdict) noexcept {
  return verdict == GroupVerdict::rejected || verdict == GroupVerdict::closed;
}

std::span<Answer> of_group(Call& call, std::size_t group) noexcept {
  return call.answered().subspan(call.groups[group].first, call.groups[group].count);
}

}  // namespace

// ---- stores -------------------------------------------------------------------------------------

AwkwardStores::AwkwardStores(store::Stores& local, store::Stores& shared, AwkwardOptions options)
    : on_misuse([](const std::string& text) { ADD_FAILURE() << "misuse of a store: " << text; }),
      local_(local),
      shared_(shared),
      options_(options),
      limits_(local.limits(), shared.limits(), options.nodes, on_misuse) {}

AwkwardStores::~AwkwardStores() {
  if (!workers_.empty()) on_misuse("the stores of workers outlive what they share");
}

std::unique_ptr<store::Store> AwkwardStores::for_worker(unsigned workers) {
  return std::make_unique<AwkwardStore>(*this, workers);
}

AwkwardStore::AwkwardStore(AwkwardStores& stores, unsigned workers)
    : stores_(stores),
      limits_(stores.limits_),
      local_(stores.local_.for_worker(workers)),
      shared_(stores.shared_.for_worker(workers)),
      budget_(stores.options_.budget) {
  grants_.reserve(kGrantsMax);
  stores_.workers_.push_back(this);
}

AwkwardStore::~AwkwardStore() {
  if (const std::size_t left = in_flight(); left > 0) {
    misuse(std::to_string(left) + " calls were in flight when the store was destroyed");
  }
  reachable_ = true;
  while (!posts_.empty()) {
    const Post post = posts_.front();
    posts_.erase(posts_.begin());
    carry_out(post, seen_);
  }
  for (const Grant& grant : grants_) {
    if (grant.state != Grant::State::held || !grant.has_ticket) continue;
    misuse("a holding of " + std::to_string(grant.cost) + " of limit " +
           std::to_string(grant.check.limit) + " was neither refunded nor kept");
  }
  std::erase(stores_.workers_, this);
}

void AwkwardStore::misuse(const std::string& text) const noexcept { stores_.on_misuse(text); }

// ---- calls --------------------------------------------------------------------------------------

bool AwkwardStore::is_shared_group(const Call& call, std::size_t group) const noexcept {
  return store::is_shared(call.checks[call.groups[group].first].limit);
}

// Groups are all of the checks, one after another, each of one mode; all limits are in use.
bool AwkwardStore::is_well_formed(const Call& call) const noexcept {
  std::size_t next = 0;
  for (const Group& group : call.all_groups()) {
    if (group.first != next || group.count == 0) return false;
    next += group.count;
  }
  if (next != call.count || call.count == 0) return false;
  for (std::size_t k = 0; k < call.group_count; ++k) {
    const Group& group = call.groups[k];
    const Check& first = call.checks[group.first];
    for (const Check& check : call.asked().subspan(group.first, group.count)) {
      if (!limits_.is_in_use(check.limit)) return false;
      if (store::is_shared(check.limit) != store::is_shared(first.limit)) return false;
      if (!store::is_shared(check.limit)) continue;
      if (limits_.find(check.limit)->sharing != limits_.find(first.limit)->sharing) return false;
    }
  }
  return true;
}

Completion AwkwardStore::decide_all(Call& call, Now now) noexcept {
  seen_ = now;
  ++counts_.decides;
  const auto reused =
      std::ranges::find_if(flights_, [&](const auto& one) { return one->call == &call; });
  if (reused != flights_.end()) {
    misuse("a call was reused while it is in flight");
    cancel(call, now);
  }
  if (!is_well_formed(call)) {
    misuse(
        "a call whose groups are not its checks, or mix modes, or with a number that is not in "
        "use");
    for (Group& group : call.all_groups()) group.verdict = GroupVerdict::closed;
    call.admitted = false;
    return Completion::now;
  }
  bool any_shared = false;
  for (std::size_t k = 0; k < call.group_count; ++k) any_shared |= is_shared_group(call, k);
  if (!any_shared) return decide_local(call, now);
  if (call.completed == nullptr) misuse("a call of shared limits without anybody to complete");

  Flight& flight = new_flight();
  flight.call = &call;
  flight.copy = call;
  flight.deadline = now.mono + budget_;
  const bool is_decided = !decide_local_part(flight, now);
  if (!is_decided) launch(flight, now);
  conclude_if_known(flight, now, false);
  if (flight.call == nullptr) {
    release_if_over(flight);
    return Completion::now;
  }
  flight.id = calls_++;
  call.ticket = kInFlight;
  return Completion::later;
}

Completion AwkwardStore::decide_local(Call& call, Now now) noexcept {
  if (local_->decide_all(call, now) == Completion::later) misuse("local limits decided later");
  for (std::size_t i = 0; i < call.count; ++i) {
    Charge& charge = call.answers[i].charge;
    if (charge.receipt.cost == 0) continue;
    const std::uint32_t grant = new_grant(call.checks[i], charge, true);
    charge = handle_of(grant);
  }
  call.ticket = 0;
  return Completion::now;
}

void AwkwardStore::gather_local(const Flight& flight, bool probe) noexcept {
  scratch_.clear();
  scratch_.kind = flight.copy.kind;
  for (std::size_t k = 0; k < flight.copy.group_count; ++k) {
    if (is_shared_group(flight.copy, k)) continue;
    const Group& group = flight.copy.groups[k];
    const std::size_t first = scratch_.count;
    for (std::size_t i = 0; i < group.count; ++i) {
      Check& check = scratch_.checks[scratch_.count++];
      check = flight.copy.checks[group.first + i];
      check.probe |= probe;
    }
    scratch_.group_from(first);
  }
}

void AwkwardStore::take_local(Flight& flight) noexcept {
  std::size_t next = 0;
  for (std::size_t k = 0; k < flight.copy.group_count; ++k) {
    if (is_shared_group(flight.copy, k)) continue;
    Group& group = flight.copy.groups[k];
    const Group& decided = scratch_.groups[next++];
    group.verdict = decided.verdict;
    group.source = decided.source;
    std::ranges::copy(of_group(scratch_, next - 1), of_group(flight.copy, k).begin());
  }
}

// Whether the shared limits have to be asked. Together, local limits are looked at first and
// charged last; apart, each group goes by itself.
bool AwkwardStore::decide_local_part(Flight& flight, Now now) noexcept {
  const bool together = flight.copy.kind == Call::Kind::all_or_nothing;
  gather_local(flight, together);
  if (scratch_.count == 0) return true;
  (void)local_->decide_all(scratch_, now);
  take_local(flight);
  if (!together || scratch_.admitted) return true;
  for (std::size_t k = 0; k < flight.copy.group_count; ++k) {
    if (!is_shared_group(flight.copy, k)) continue;
    flight.copy.groups[k].verdict = GroupVerdict::not_asked;
    flight.copy.groups[k].source = Source::exact;
    std::ranges::fill(of_group(flight.copy, k), Answer{});
  }
  return false;
}

bool AwkwardStore::charge_local_part(Flight& flight, Now now) noexcept {
  gather_local(flight, false);
  if (scratch_.count == 0) return true;
  (void)local_->decide_all(scratch_, now);
  take_local(flight);
  return scratch_.admitted;
}

void AwkwardStore::launch(Flight& flight, Now now) noexcept {
  const bool at_once = at_once_ || (random_ && random_->below(100) < mood_.at_once_percent);
  for (std::size_t k = 0; k < flight.copy.group_count; ++k) {
    if (!is_shared_group(flight.copy, k)) continue;
    Part& part = flight.parts[k];
    part = {.stage = Stage::asked, .awaited = true};
    if (!reachable_ || !limits_.shared_secret()) {
      fail(flight, k, now);
    } else if (at_once) {
      arrive(flight, k, now);
      reply(flight, k, now);
    } else if (random_) {
      const auto way = [&] {
        return Nanos{static_cast<std::int64_t>(
            random_->below(static_cast<std::uint64_t>(mood_.slowest.count()) + 1))};
      };
      part.fails = random_->below(100) < mood_.failed_percent;
      if (random_->below(100) < mood_.lost_percent) continue;
      part.arrives = now.mono + way();
      if (random_->below(100) < mood_.lost_percent) continue;
      part.replies = part.arrives + way();
    }
  }
}

AwkwardStore::Flight& AwkwardStore::new_flight() {
  const auto unused = std::ranges::find_if(flights_, [](const auto& one) { return !one->in_use; });
  Flight& flight =
      unused != flights_.end() ? **unused : *flights_.emplace_back(std::make_unique<Flight>());
  flight.in_use = true;
  flight.cancelled = flight.fell_back = false;
  flight.id = ~std::size_t{0};
  flight.grants.fill(0);
  flight.parts.fill({});
  return flight;
}

AwkwardStore::Flight* AwkwardStore::find(std::size_t call) noexcept {
  const auto found = std::ranges::find_if(
      flights_, [&](const auto& one) { return one->in_use && one->id == call; });
  return found != flights_.end() ? found->get() : nullptr;
}

const AwkwardStore::Flight* AwkwardStore::find(std::size_t call) const noexcept {
  return const_cast<AwkwardStore*>(this)->find(call);
}

void AwkwardStore::release_if_over(Flight& flight) noexcept {
  if (!flight.in_use || flight.call != nullptr) return;
  const bool is_over = std::ranges::all_of(flight.parts, [&](const Part& part) {
    // What a seed has lost never comes.
    const bool is_lost = random_ && ((part.stage == Stage::asked && part.arrives == kNever) ||
                                     (part.stage == Stage::decided && part.replies == kNever));
    return part.stage == Stage::none || part.stage == Stage::over || is_lost;
  });
  if (!is_over) return;
  for (const std::uint32_t grant : flight.grants) {
    if (grant == 0) continue;
    grants_[grant - 1].awaited = false;
    free_if_over(grants_[grant - 1]);
  }
  flight.in_use = false;
}

void AwkwardStore::cancel(Call& call, Now now) noexcept {
  seen_ = now;
  const auto found =
      std::ranges::find_if(flights_, [&](const auto& one) { return one->call == &call; });
  if (found == flights_.end()) return misuse("a call was cancelled that is not in flight");
  Flight& flight = **found;
  flight.call = nullptr;
  flight.cancelled = true;
  call.ticket = 0;
  for (std::size_t k = 0; k < flight.copy.group_count; ++k) {
    if (!flight.parts[k].awaited) give_back(flight, k, now);
    flight.parts[k].awaited = false;
  }
  release_if_over(flight);
}

// ---- groups of shared limits --------------------------------------------------------------------

Check AwkwardStore::at_truth(Check check) const noexcept {
  check.limit = limits_.find(check.limit)->truth;
  return check;
}

Check AwkwardStore::at_share(Check check) const noexcept {
  if (!store::is_shared(check.limit)) return check;
  check.limit = limits_.find(check.limit)->share;
  check.key.low ^= kShareSalt;
  return check;
}

void AwkwardStore::arrive(Flight& flight, std::size_t k, Now now) noexcept {
  Part& part = flight.parts[k];
  if (part.stage != Stage::asked) return;
  part.stage = Stage::decided;
  part.arrives = kNever;
  const Group& group = flight.copy.groups[k];
  scratch_.clear();
  scratch_.kind = Call::Kind::all_or_nothing;
  for (std::size_t i = 0; i < group.count; ++i) {
    scratch_.checks[scratch_.count++] = at_truth(flight.copy.checks[group.first + i]);
  }
  scratch_.group_from(0);
  if (shared_->decide_all(scratch_, now) == Completion::later) misuse("the truth decides later");
  std::ranges::copy(scratch_.answered(), flight.replies.begin() + group.first);
  flight.reply_verdicts[k] = scratch_.groups[0].verdict;
}

void AwkwardStore::reply(Flight& flight, std::size_t k, Now now) noexcept {
  Part& part = flight.parts[k];
  if (part.stage != Stage::decided) return;
  part.stage = Stage::over;
  part.replies = kNever;
  if (!part.awaited) return take_late_reply(flight, k, now);
  part.awaited = false;
  Group& group = flight.copy.groups[k];
  group.verdict = flight.reply_verdicts[k];
  group.source = Source::exact;
  std::copy_n(flight.replies.begin() + group.first, group.count, of_group(flight.copy, k).begin());
}

// The reply to a group that was decided without it, or that was cancelled.
void AwkwardStore::take_late_reply(Flight& flight, std::size_t k, Now now) noexcept {
  const Group& group = flight.copy.groups[k];
  if (flight.reply_verdicts[k] != GroupVerdict::admitted) return;
  const bool passed = flight.copy.kind == Call::Kind::all_or_nothing ? flight.copy.admitted
                                                                     : !is_rejected(group.verdict);
  const bool stands = !flight.cancelled && passed && group.verdict != GroupVerdict::not_asked;
  for (std::size_t i = group.first; i < std::size_t{group.first} + group.count; ++i) {
    const Charge& charge = flight.replies[i].charge;
    if (charge.receipt.cost == 0) continue;
    const Check check = at_truth(flight.copy.checks[i]);
    Holding late = store::holding(charge, check.cost);
    Grant* const grant = flight.grants[i] != 0 ? &grants_[flight.grants[i] - 1] : nullptr;
    const bool was_refunded = grant != nullptr && grant->state == Grant::State::refunded;
    if (!stands || was_refunded) {
      shared_->refund(check, late, now);
    } else if (grant != nullptr) {
      if (grant->cost != check.cost) shared_->correct(check, late, grant->cost, now);
      grant->there = late;
    }
  }
}

void AwkwardStore::fail(Flight& flight, std::size_t k, Now now) noexcept {
  Part& part = flight.parts[k];
  if (part.stage == Stage::none || part.stage == Stage::over) return;
  part.stage = Stage::over;
  part.arrives = part.replies = kNever;
  if (part.awaited) fall_back(flight, k, now);
}

void AwkwardStore::fall_back(Flight& flight, std::size_t k, Now now) noexcept {
  flight.parts[k].awaited = false;
  if (!flight.fell_back) ++counts_.late;
  flight.fell_back = true;
  Group& group = flight.copy.groups[k];
  switch (limits_.find(flight.copy.checks[group.first].limit)->sharing.on_failure) {
    case OnFailure::share: return decide_share(flight, k, now);
    case OnFailure::open:
      group.verdict = GroupVerdict::open;
      group.source = Source::open;
      break;
    case OnFailure::closed:
      group.verdict = GroupVerdict::closed;
      group.source = Source::closed;
      break;
  }
  std::ranges::fill(of_group(flight.copy, k), Answer{});
}

void AwkwardStore::decide_share(Flight& flight, std::size_t k, Now now) noexcept {
  Group& group = flight.copy.groups[k];
  scratch_.clear();
  scratch_.kind = Call::Kind::all_or_nothing;
  for (std::size_t i = 0; i < group.count; ++i) {
    scratch_.checks[scratch_.count++] = at_share(flight.copy.checks[group.first + i]);
  }
  scratch_.group_from(0);
  (void)local_->decide_all(scratch_, now);
  std::ranges::copy(scratch_.answered(), of_group(flight.copy, k).begin());
  group.verdict = scratch_.groups[0].verdict;
  group.source = Source::share;
}

// ---- completion ---------------------------------------------------------------------------------

void AwkwardStore::conclude_if_known(Flight& flight, Now now, bool notify) noexcept {
  if (flight.call == nullptr) return;
  bool any_awaited = false;
  bool any_rejected = false;
  for (std::size_t k = 0; k < flight.copy.group_count; ++k) {
    any_awaited |= flight.parts[k].awaited;
    any_rejected |= !flight.parts[k].awaited && is_rejected(flight.copy.groups[k].verdict) &&
                    is_shared_group(flight.copy, k);
  }
  const bool enough =
      reject_early_ && any_rejected && flight.copy.kind == Call::Kind::all_or_nothing;
  if (!any_awaited || enough) conclude(flight, now, notify);
}

void AwkwardStore::conclude(Flight& flight, Now now, bool notify) noexcept {
  Call& copy = flight.copy;
  bool admitted = true;
  for (std::size_t k = 0; k < copy.group_count; ++k) {
    Part& part = flight.parts[k];
    if (part.awaited) {
      part.awaited = false;
      copy.groups[k].verdict = GroupVerdict::not_asked;
      copy.groups[k].source = Source::exact;
      std::ranges::fill(of_group(copy, k), Answer{});
    }
    const GroupVerdict verdict = copy.groups[k].verdict;
    admitted &= !is_rejected(verdict) && verdict != GroupVerdict::not_asked;
  }
  if (copy.kind == Call::Kind::all_or_nothing) {
    if (admitted) admitted = charge_local_part(flight, now);
    if (!admitted) give_back_all(flight, now);
  }
  copy.admitted = admitted;
  hand_out(flight);

  Call& call = *flight.call;
  flight.call = nullptr;
  bool same = call.count == copy.count && call.group_count == copy.group_count &&
              call.kind == copy.kind && call.completed == copy.completed &&
              call.owner == copy.owner;
  for (std::size_t i = 0; same && i < copy.count; ++i) {
    same = call.checks[i].key == copy.checks[i].key && call.checks[i].limit == copy.checks[i].limit;
  }
  if (!same) return misuse("a call was changed while it is in flight");
  std::ranges::copy(copy.answered(), call.answers.begin());
  std::ranges::copy(copy.all_groups(), call.groups.begin());
  call.admitted = admitted;
  call.ticket = 0;
  release_if_over(flight);
  if (notify && call.completed != nullptr) call.completed(call);
}

// The groups that had room are as they would be without the call.
void AwkwardStore::give_back_all(Flight& flight, Now now) noexcept {
  for (std::size_t k = 0; k < flight.copy.group_count; ++k) {
    if (flight.copy.groups[k].verdict == GroupVerdict::admitted) give_back(flight, k, now);
  }
}

// What a group has charged, if anything; its answers become those of a peek.
void AwkwardStore::give_back(Flight& flight, std::size_t k, Now now) noexcept {
  const Group& group = flight.copy.groups[k];
  if (group.verdict != GroupVerdict::admitted) return;
  const bool at_shared = group.source == Source::exact;
  store::Store& from = at_shared ? *shared_ : *local_;
  for (std::size_t i = group.first; i < std::size_t{group.first} + group.count; ++i) {
    const Check& check = flight.copy.checks[i];
    Answer& answer = flight.copy.answers[i];
    const Check there = at_shared ? at_truth(check) : at_share(check);
    if (answer.charge.receipt.cost > 0) {
      Holding given = store::holding(answer.charge, check.cost);
      from.refund(there, given, now);
    }
    scratch_.clear();
    scratch_.kind = Call::Kind::all_or_nothing;
    scratch_.checks[scratch_.count++] = there;
    scratch_.checks[0].cost = 0;
    scratch_.group_from(0);
    (void)from.decide_all(scratch_, now);
    answer = {.decision = scratch_.answers[0].decision, .charge = {}};
  }
}

void AwkwardStore::hand_out(Flight& flight) noexcept {
  for (std::size_t k = 0; k < flight.copy.group_count; ++k) {
    const Group& group = flight.copy.groups[k];
    const Part& part = flight.parts[k];
    const bool reply_may_come = part.stage == Stage::asked || part.stage == Stage::decided;
    for (std::size_t i = group.first; i < std::size_t{group.first} + group.count; ++i) {
      Charge& charge = flight.copy.answers[i].charge;
      if (charge.receipt.cost == 0) continue;
      const std::uint32_t grant =
          new_grant(flight.copy.checks[i], charge, group.source != Source::exact);
      grants_[grant].awaited = reply_may_come;
      if (reply_may_come) flight.grants[i] = grant + 1;
      charge = handle_of(grant);
    }
  }
}

// ---- after the decision -------------------------------------------------------------------------

AwkwardStore::Grant& AwkwardStore::unused_grant() noexcept {
  const auto unused = std::ranges::find(grants_, Grant::State::unused, &Grant::state);
  if (unused != grants_.end()) return *unused;
  if (grants_.size() < kGrantsMax) return grants_.emplace_back();
  while (true) {
    next_grant_ = (next_grant_ + 1) % kGrantsMax;
    Grant& oldest = grants_[next_grant_];
    if (!oldest.has_ticket && !oldest.awaited && oldest.posts == 0) return oldest;
  }
}

std::uint32_t AwkwardStore::new_grant(const Check& check, const Charge& charge,
                                      bool is_here) noexcept {
  Grant& grant = unused_grant();
  grant = {.state = Grant::State::held,
           .generation = grant.generation + 1,
           .check = check,
           .cost = check.cost};
  (is_here ? grant.here : grant.there) = store::holding(charge, check.cost);
  return static_cast<std::uint32_t>(&grant - grants_.data());
}

Charge AwkwardStore::handle_of(std::uint32_t grant) const noexcept {
  const Grant& of = grants_[grant];
  return {.limit = of.check.limit,
          .ticks = of.generation,
          .receipt = {.mark = grant, .cost = of.cost, .edition = 0},
          .edition = kHandle};
}

// None: a holding of nothing, which is right, or one that is not the caller's any more.
AwkwardStore::Grant* AwkwardStore::grant_of(const Check* check, const Holding& holding,
                                            const char* what) noexcept {
  const auto wrong = [&](const char* how) {
    misuse(std::string{what} + " of a holding " + how);
    return nullptr;
  };
  if (holding.ticket == kVoid) return wrong("that is void");
  if (holding.charge.receipt.cost == 0) return nullptr;
  const auto index = static_cast<std::size_t>(holding.charge.receipt.mark);
  if (holding.charge.edition != kHandle || index >= grants_.size()) {
    return wrong("that was not given out");
  }
  Grant& grant = grants_[index];
  if (grant.generation != holding.charge.ticks || grant.state != Grant::State::held) {
    return wrong("that is over");
  }
  const bool same =
      check == nullptr || (grant.check.key == check->key && grant.check.limit == check->limit);
  if (!same) return wrong("under another check");
  return &grant;
}

void AwkwardStore::free_if_over(Grant& grant) noexcept {
  const bool ended = grant.state == Grant::State::refunded || grant.state == Grant::State::kept;
  if (ended && !grant.awaited && grant.posts == 0) grant.state = Grant::State::unused;
}

void AwkwardStore::charge(const Check& check, Now now) noexcept {
  ++counts_.charges;
  if (!limits_.is_in_use(check.limit)) return misuse("a charge of a number that is not in use");
  post(Doing::charge, check, nullptr, check.cost, now);
}

void AwkwardStore::refund(const Check& check, Holding& holding, Now now) noexcept {
  ++counts_.refunds;
  if (Grant* const grant = grant_of(&check, holding, "a refund")) {
    grant->state = Grant::State::refunded;
    grant->has_ticket = false;
    post(Doing::refund, check, grant, 0, now);
  }
  holding = {.charge = {}, .more = {}, .cost = 0, .ticket = kVoid};
}

void AwkwardStore::correct(const Check& check, Holding& holding, Cost cost, Now now) noexcept {
  Grant* const grant = grant_of(&check, holding, "a correction");
  if (cost == holding.cost) return;
  ++(cost > holding.cost ? counts_.charges : counts_.refunds);
  if (grant == nullptr) return;
  holding.cost = grant->cost = cost;
  give_ticket(*grant, holding);
  post(Doing::correct, check, grant, cost, now);
}

void AwkwardStore::renew(const Check& check, Holding& slot, Now now) noexcept {
  ++counts_.renewals;
  if (Grant* const grant = grant_of(&check, slot, "a renewal")) {
    give_ticket(*grant, slot);
    post(Doing::renew, check, grant, 0, now);
  }
}

// The result of what was asked about a shared limit is not known yet.
void AwkwardStore::give_ticket(Grant& grant, Holding& holding) noexcept {
  if (!store::is_shared(grant.check.limit)) return;
  grant.has_ticket = true;
  holding.ticket = kHeld;
}

void AwkwardStore::drop(Holding& holding) noexcept {
  if (Grant* const grant = grant_of(nullptr, holding, "keeping")) {
    grant->state = Grant::State::kept;
    grant->has_ticket = false;
    free_if_over(*grant);
  }
  holding = {.charge = {}, .more = {}, .cost = 0, .ticket = kVoid};
}

// Local limits at once; the others are sent by advance(), in this order.
void AwkwardStore::post(Doing doing, const Check& check, Grant* grant, Cost cost,
                        Now now) noexcept {
  seen_ = now;
  const auto number = grant != nullptr ? static_cast<std::uint32_t>(grant - grants_.data()) : 0;
  if (grant != nullptr) ++grant->posts;
  const Post one{.doing = doing, .grant = number, .check = check, .cost = cost, .due = now.mono};
  if (!store::is_shared(check.limit)) return carry_out(one, now);
  posts_.push_back(one);
}

void AwkwardStore::carry_out(const Post& post, Now now) noexcept {
  const bool is_local = !store::is_shared(post.check.limit);
  if (post.doing == Doing::charge) {
    (is_local ? *local_ : *shared_).charge(is_local ? post.check : at_truth(post.check), now);
    return;
  }
  Grant& grant = grants_[post.grant];
  const auto do_at = [&](store::Store& at, const Check& check, std::optional<Holding>& holding) {
    if (!holding) return;
    switch (post.doing) {
      case Doing::refund: return at.refund(check, *holding, now);
      case Doing::correct: return at.correct(check, *holding, post.cost, now);
      case Doing::renew: return at.renew(check, *holding, now);
      case Doing::charge: return;
    }
  };
  do_at(*local_, at_share(post.check), grant.here);
  if (!is_local) do_at(*shared_, at_truth(post.check), grant.there);
  --grant.posts;
  free_if_over(grant);
}

std::size_t AwkwardStore::tickets() const noexcept {
  return static_cast<std::size_t>(std::ranges::count(grants_, true, &Grant::has_ticket));
}

// ---- the loop -----------------------------------------------------------------------------------

void AwkwardStore::advance(Now now) noexcept {
  seen_ = now;
  while (move_earliest(now)) {
  }
}

// One event that is due, the earliest: a completed call may change all that comes after it.
bool AwkwardStore::move_earliest(Now now) noexcept {
  if (reachable_ && !posts_.empty()) {
    const Post post = posts_.front();
    posts_.erase(posts_.begin());
    carry_out(post, now);
    return true;
  }
  Flight* first = nullptr;
  std::size_t group = 0;
  MonoTime at = kNever;
  for (const auto& flight : flights_) {
    if (!flight->in_use) continue;
    for (std::size_t k = 0; k < flight->copy.group_count; ++k) {
      const Part& part = flight->parts[k];
      const MonoTime due = part.stage == Stage::asked     ? part.arrives
                           : part.stage == Stage::decided ? part.replies
                                                          : kNever;
      if (due >= at) continue;
      first = flight.get();
      group = k;
      at = due;
    }
    if (flight->call != nullptr && flight->deadline < at) {
      first = flight.get();
      group = kGroupsMax;
      at = flight->deadline;
    }
  }
  if (first == nullptr || at > now.mono) return false;
  move(*first, group, now);
  return true;
}

// Of `group`, or the deadline.
void AwkwardStore::move(Flight& flight, std::size_t group, Now now) noexcept {
  if (group < kGroupsMax) {
    const Part& part = flight.parts[group];
    if (part.stage == Stage::asked) {
      arrive(flight, group, now);
    } else if (part.fails) {
      fail(flight, group, now);
    } else {
      reply(flight, group, now);
    }
  } else {
    for (std::size_t k = 0; k < flight.copy.group_count; ++k) {
      if (flight.parts[k].awaited) fall_back(flight, k, now);
    }
  }
  conclude_if_known(flight, now, true);
  release_if_over(flight);
}

MonoTime AwkwardStore::wake_at() const noexcept {
  MonoTime at = reachable_ && !posts_.empty() ? posts_.front().due : kNever;
  for (const auto& flight : flights_) {
    if (!flight->in_use) continue;
    for (const Part& part : flight->parts) {
      if (part.stage == Stage::asked) at = std::min(at, part.arrives);
      if (part.stage == Stage::decided) at = std::min(at, part.replies);
    }
    if (flight->call != nullptr) at = std::min(at, flight->deadline);
  }
  return at;
}

void AwkwardStore::wait() noexcept {
  if (in_flight() == 0) return misuse("waiting, although no call is in flight");
  Now now = seen_;
  now.mono = std::max(now.mono, wake_at());
  advance(now);
}

// ---- the script ---------------------------------------------------------------------------------

bool AwkwardStore::is_waited_for(std::size_t call) const noexcept {
  const Flight* const flight = find(call);
  return flight != nullptr && flight->call != nullptr;
}

std::size_t AwkwardStore::in_flight() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      flights_, [](const auto& one) { return one->in_use && one->call != nullptr; }));
}

void AwkwardStore::arrive(std::size_t call, std::size_t group, Now now) noexcept {
  seen_ = now;
  if (Flight* const flight = find(call)) arrive(*flight, group, now);
}

void AwkwardStore::reply(std::size_t call, std::size_t group, Now now) noexcept {
  seen_ = now;
  Flight* const flight = find(call);
  if (flight == nullptr) return;
  reply(*flight, group, now);
  conclude_if_known(*flight, now, true);
  release_if_over(*flight);
}

void AwkwardStore::answer(std::size_t call, std::size_t group, Now now) noexcept {
  arrive(call, group, now);
  reply(call, group, now);
}

void AwkwardStore::fail(std::size_t call, std::size_t group, Now now) noexcept {
  seen_ = now;
  Flight* const flight = find(call);
  if (flight == nullptr) return;
  fail(*flight, group, now);
  conclude_if_known(*flight, now, true);
  release_if_over(*flight);
}

void AwkwardStore::lose(std::size_t call, std::size_t group) noexcept {
  Flight* const flight = find(call);
  if (flight == nullptr || flight->parts[group].stage == Stage::none) return;
  flight->parts[group].stage = Stage::over;
  release_if_over(*flight);
}

bool AwkwardStore::move_any(Random& random, Now now, bool replies) noexcept {
  const auto can_move = [&](const Part& part) {
    return part.stage == Stage::asked || (replies && part.stage == Stage::decided);
  };
  std::uint64_t ways = 0;
  for (const auto& flight : flights_) {
    if (!flight->in_use) continue;
    ways += static_cast<std::uint64_t>(std::ranges::count_if(flight->parts, can_move));
  }
  if (ways == 0) return false;
  std::uint64_t chosen = random.below(ways);
  for (std::size_t f = 0; f < flights_.size(); ++f) {
    if (!flights_[f]->in_use) continue;
    for (std::size_t k = 0; k < kGroupsMax; ++k) {
      if (!can_move(flights_[f]->parts[k]) || chosen-- > 0) continue;
      seen_ = now;
      move(*flights_[f], k, now);
      return true;
    }
  }
  return true;
}

void AwkwardStore::answer_all(Now now) noexcept {
  Random order{calls_};
  while (move_any(order, now)) {
  }
}

void AwkwardStore::be_random(std::uint64_t seed, Mood mood) {
  random_.emplace(seed);
  mood_ = mood;
}

}  // namespace sluice::testing
