// Decisions of the shared store: order, deadlines, outages.
#include "store/shared/shared_store.h"

#include "store/shared/shared_store_fixture.h"

#include <gtest/gtest.h>

namespace sluice::store {
namespace {

using Kind = ScriptedAuthority::Asked::Kind;

TEST_F(SharedStoreTest, LocalCallsDoNotReachTheAuthority) {
  Asking call;
  group(call, check(local(window(1)), 1));
  EXPECT_EQ(decide(call), Completion::now);
  EXPECT_TRUE(call.admitted);
  EXPECT_EQ(decide(call), Completion::now);
  EXPECT_FALSE(call.admitted);
  EXPECT_TRUE(authority_.decisions.empty());
  EXPECT_EQ(store_->counts().decides, 2U);
}

// A caller that is completed later acts with the time of its request: the engine asks shared shadow
// rules then. Their budget begins with the turn that completed it, and so does their place among
// the deadlines.
TEST_F(SharedStoreTest, CountsTheBudgetFromTheLastTurn) {
  const LimitNumber limit = shared(window(10));
  const Now asked = now_;
  Asking first;
  group(first, check(limit, 1));
  ASSERT_EQ(decide(first), Completion::later);
  pass(15ms);
  authority_.admit();
  advance(1ms);
  ASSERT_EQ(first.completions, 1);

  Asking second;
  group(second, check(limit, 2));
  second.completed = [](Call& done) noexcept { ++static_cast<Asking&>(done).completions; };
  ASSERT_EQ(store_->decide_all(second, asked), Completion::later);
  EXPECT_EQ(store_->wake_at(), now_.mono + 20ms);
  advance(19ms);
  EXPECT_EQ(second.completions, 0);
  advance(1ms);
  EXPECT_EQ(second.completions, 1);
}

TEST_F(SharedStoreTest, CompletesOnceWithTheReply) {
  Asking call;
  group(call, check(shared(window(10)), 1));
  ASSERT_EQ(decide(call), Completion::later);
  advance(1ms);
  EXPECT_EQ(call.completions, 0);
  authority_.admit(0, 7);
  advance();
  EXPECT_EQ(call.completions, 1);
  EXPECT_TRUE(call.admitted);
  EXPECT_EQ(call.groups[0].source, Source::exact);
  EXPECT_EQ(call.answers[0].decision.remaining, 7U);
  EXPECT_EQ(call.answers[0].charge.limit, call.checks[0].limit);
  advance(1s);
  EXPECT_EQ(call.completions, 1);
  EXPECT_EQ(store_->calls_in_flight(), 0U);
  EXPECT_EQ(store_->groups_asked(), 0U);
}

// What the table would reject costs the authority nothing.
TEST_F(SharedStoreTest, LooksAtLocalLimitsFirst) {
  const Check small = check(local(window(1)), 5);
  Asking first;
  group(first, small);
  ASSERT_EQ(decide(first), Completion::now);
  Asking call;
  group(call, check(shared(window(10)), 1));
  group(call, small);
  EXPECT_EQ(decide(call), Completion::now);
  EXPECT_FALSE(call.admitted);
  EXPECT_EQ(call.groups[0].verdict, GroupVerdict::not_asked);
  EXPECT_EQ(call.groups[1].verdict, GroupVerdict::rejected);
  EXPECT_TRUE(authority_.decisions.empty());
}

// Local limits are charged last: a request that the authority rejects costs none of them.
TEST_F(SharedStoreTest, ChargesLocalLimitsLast) {
  const Check mine = check(local(window(5)), 5);
  Asking call;
  group(call, mine);
  group(call, check(shared(window(10)), 1));
  ASSERT_EQ(decide(call), Completion::later);
  EXPECT_EQ(table_->read(mine.key, now_), std::nullopt);
  authority_.reject();
  advance();
  EXPECT_FALSE(call.admitted);
  EXPECT_EQ(call.groups[0].verdict, GroupVerdict::admitted);
  EXPECT_EQ(call.answers[0].decision.remaining, 5U) << "what is left without this request";
  EXPECT_EQ(table_->read(mine.key, now_), std::nullopt);
}

TEST_F(SharedStoreTest, GivesSharedChargesBackWhenTheTableRejectsAtLast) {
  const Check mine = check(local(window(1)), 5);
  Asking call;
  group(call, mine);
  group(call, check(shared(window(10)), 1, 4));
  ASSERT_EQ(decide(call), Completion::later);
  Asking faster;
  group(faster, mine);
  ASSERT_EQ(decide(faster), Completion::now);
  ASSERT_TRUE(faster.admitted);
  authority_.admit(0, 3);
  advance();
  EXPECT_FALSE(call.admitted);
  EXPECT_EQ(call.answers[1].decision.remaining, 7U);
  EXPECT_EQ(call.answers[1].charge.receipt.cost, 0U);
  ASSERT_EQ(authority_.numbered.size(), 1U);
  EXPECT_EQ(authority_.numbered[0].kind, Kind::refund);
  EXPECT_EQ(authority_.numbered[0].costs, std::vector<Cost>{4});
}

// Every order in which two shared groups can be answered, one of which rejects: nothing stays
// charged, and the call does not wait for the other.
TEST_F(SharedStoreTest, GivesBackWhatOtherGroupsReject) {
  const LimitNumber limit = shared(window(10));
  for (const bool admitted_first : {true, false}) {
    Asking call;
    group(call, check(limit, 1, 2));
    group(call, check(limit, 2));
    ASSERT_EQ(decide(call), Completion::later);
    ASSERT_EQ(authority_.decisions.size(), 2U);
    if (admitted_first) authority_.admit(0);
    authority_.reject(admitted_first ? 0 : 1);
    advance();
    EXPECT_EQ(call.completions, 1);
    EXPECT_FALSE(call.admitted);
    EXPECT_EQ(call.groups[0].verdict,
              admitted_first ? GroupVerdict::admitted : GroupVerdict::not_asked);
    EXPECT_EQ(call.groups[1].verdict, GroupVerdict::rejected);
    if (!admitted_first) {
      EXPECT_TRUE(authority_.numbered.empty());
      authority_.admit(0);
      advance(5s);
    }
    ASSERT_EQ(authority_.numbered.size(), 1U) << admitted_first;
    EXPECT_EQ(authority_.numbered[0].costs, std::vector<Cost>{2});
    authority_.numbered.clear();
    EXPECT_EQ(store_->groups_asked(), 0U);
    pass(5s);  // the rejection is not remembered any more
  }
}

TEST_F(SharedStoreTest, DecidesIndependentGroupsByThemselves) {
  const LimitNumber limit = shared(window(10));
  Asking call;
  call.kind = Call::Kind::independent;
  group(call, check(limit, 1));
  group(call, check(local(window(1)), 3));
  group(call, check(limit, 2));
  ASSERT_EQ(decide(call), Completion::later);
  EXPECT_EQ(call.groups[1].verdict, GroupVerdict::admitted);
  authority_.reject(0);
  advance();
  EXPECT_EQ(call.completions, 0) << "the other one is still asked";
  authority_.admit(0);
  advance();
  EXPECT_EQ(call.completions, 1);
  EXPECT_FALSE(call.admitted);
  EXPECT_EQ(call.groups[0].verdict, GroupVerdict::rejected);
  EXPECT_EQ(call.groups[2].verdict, GroupVerdict::admitted);
  EXPECT_TRUE(authority_.numbered.empty()) << "each is charged by itself";
}

// ---- the deadline -------------------------------------------------------------------------------

TEST_F(SharedStoreTest, FollowsOnFailureAtTheDeadline) {
  struct Case {
    OnFailure policy;
    bool admitted;
    GroupVerdict verdict;
    Source source;
  };
  std::uint64_t key = 0;
  for (const Case& of : {Case{OnFailure::share, true, GroupVerdict::admitted, Source::share},
                         Case{OnFailure::open, true, GroupVerdict::open, Source::open},
                         Case{OnFailure::closed, false, GroupVerdict::closed, Source::closed}}) {
    Asking call;
    group(call, check(shared(window(10), of.policy), ++key));
    ASSERT_EQ(decide(call), Completion::later);
    EXPECT_EQ(store_->wake_at(), now_.mono + 20ms);
    advance(20ms - 1ns);
    EXPECT_EQ(call.completions, 0);
    advance(1ns);
    EXPECT_EQ(call.completions, 1);
    EXPECT_EQ(call.admitted, of.admitted);
    EXPECT_EQ(call.groups[0].verdict, of.verdict);
    EXPECT_EQ(call.groups[0].source, of.source);
  }
  EXPECT_EQ(store_->counts().late, 3U);
  EXPECT_EQ(store_->shared_counts().deadline, 3U);
}

// Ten per hour of two nodes: five each.
TEST_F(SharedStoreTest, AdmitsAShareOfTheLimit) {
  const LimitNumber limit = shared(window(10));
  int admitted = 0;
  for (int i = 0; i < 8; ++i) {
    Asking call;
    group(call, check(limit, 1));
    if (decide(call) == Completion::later) advance(20ms);
    if (call.admitted) ++admitted;
    EXPECT_EQ(call.groups[0].source, Source::share);
    EXPECT_EQ(call.answers[0].decision.limit, 5U);
  }
  EXPECT_EQ(admitted, 5);
}

// A cost above the share, but not above the limit, fits again when the authority is back.
TEST_F(SharedStoreTest, DoesNotSayNeverUnderAShare) {
  Asking call;
  group(call, check(shared(window(10)), 1, 8));
  ASSERT_EQ(decide(call), Completion::later);
  advance(20ms);
  EXPECT_EQ(call.answers[0].decision.verdict, Verdict::rejected);
}

TEST_F(SharedStoreTest, GivesBackWhatIsChargedAfterAClosedDeadline) {
  Asking call;
  group(call, check(shared(window(10), OnFailure::closed), 1, 3));
  ASSERT_EQ(decide(call), Completion::later);
  advance(20ms);
  ASSERT_FALSE(call.admitted);
  authority_.admit();
  advance(200ms);
  ASSERT_EQ(authority_.numbered.size(), 1U);
  EXPECT_EQ(authority_.numbered[0].kind, Kind::refund);
  EXPECT_EQ(authority_.numbered[0].costs, std::vector<Cost>{3});
}

// Each request that share or open admitted is charged once at the authority, whatever the late
// reply says.
TEST_F(SharedStoreTest, SettlesWhatALateReplyHasNotCharged) {
  for (const OnFailure policy : {OnFailure::share, OnFailure::open}) {
    const LimitNumber limit = shared(window(10), policy);
    for (int how = 0; how < 3; ++how) {
      Asking call;
      const std::uint64_t key =
          10 + static_cast<std::uint64_t>(policy) * 10 + static_cast<std::uint64_t>(how);
      group(call, check(limit, key, 2));
      ASSERT_EQ(decide(call), Completion::later);
      advance(20ms);
      ASSERT_TRUE(call.admitted);
      EXPECT_TRUE(authority_.numbered.empty()) << "the reply may still tell";
      if (how == 0) authority_.admit();
      if (how == 1) authority_.reject();
      if (how == 2) authority_.fail();
      advance(200ms);
      if (how == 0) {
        EXPECT_TRUE(authority_.numbered.empty()) << "charged already";
        continue;
      }
      ASSERT_EQ(authority_.numbered.size(), 1U) << how;
      EXPECT_EQ(authority_.numbered[0].kind, Kind::settle);
      EXPECT_EQ(authority_.numbered[0].costs, std::vector<Cost>{2});
      authority_.charged(0, 2, 1);
      advance();
    }
  }
}

// A request that a share admitted and that does not count after all costs nothing in the end, also
// if the authority had charged it, too, and whichever is known first.
TEST_F(SharedStoreTest, RefundsALateChargeWithItsRequest) {
  const LimitNumber limit = shared(window(10));
  for (const bool reply_first : {true, false}) {
    for (const bool charged : {true, false}) {
      Asking call;
      group(call, check(limit, charged ? 1 : 2, 2));
      ASSERT_EQ(decide(call), Completion::later);
      advance(20ms);
      ASSERT_TRUE(call.admitted);
      const auto reply = [&] {
        charged ? authority_.admit() : authority_.fail();
        store_->advance(now_);
      };
      if (reply_first) reply();
      authority_.numbered.clear();  // what was settled stays
      Holding held = holding(call.answers[0].charge, 2);
      store_->refund(call.checks[0], held, now_);
      if (!reply_first) reply();
      EXPECT_EQ(authority_.numbered.size(), charged ? 1U : 0U) << reply_first << charged;
      if (charged) {
        EXPECT_EQ(authority_.numbered.at(0).kind, Kind::refund);
      }
      EXPECT_EQ(store_->settlements_waiting(), 0U);
      authority_.numbered.clear();
    }
  }
}

TEST_F(SharedStoreTest, KeepsABoundedNumberOfLateCharges) {
  options_.late_charges_max = 3;
  options_.failures_max = 1000;
  store_ = std::make_unique<SharedStore>(*table_, limits_, authority_, options_);
  const LimitNumber limit = shared(window(10));
  for (std::uint64_t i = 0; i < 10; ++i) {
    Asking call;
    group(call, check(limit, i));
    ASSERT_EQ(decide(call), Completion::later);
    advance(20ms);
    authority_.admit();
    advance();
  }
  EXPECT_EQ(store_->late_charges(), 3U);
  EXPECT_EQ(store_->groups_asked(), 0U);
}

TEST_F(SharedStoreTest, GivesBackWhatIsChargedAfterACancel) {
  Asking call;
  group(call, check(shared(window(10)), 1, 2));
  group(call, check(shared(window(10)), 2));
  ASSERT_EQ(decide(call), Completion::later);
  authority_.admit(0);
  store_->advance(now_);
  store_->cancel(call, now_);
  ASSERT_EQ(authority_.numbered.size(), 1U) << "what was charged before";
  EXPECT_EQ(authority_.numbered[0].costs, std::vector<Cost>{2});
  authority_.admit(0);
  advance(1s);
  ASSERT_EQ(authority_.numbered.size(), 2U) << "and after";
  EXPECT_EQ(call.completions, 0);
  EXPECT_EQ(store_->calls_in_flight(), 0U);
  EXPECT_EQ(store_->groups_asked(), 0U);
}

// A completed call may cancel another one that is complete, too, and ask again.
TEST_F(SharedStoreTest, CallersMayCancelAndAskWhileCallsComplete) {
  const LimitNumber limit = shared(window(10));
  struct Pair {
    SharedStoreTest* test = nullptr;
    SharedStore* store = nullptr;
    Now now;
    Asking first;
    Asking second;
    Asking third;
  } pair{.test = this, .store = store_.get(), .now = now_};
  group(pair.first, check(limit, 1));
  group(pair.second, check(limit, 2));
  group(pair.third, check(limit, 3));
  pair.first.owner = &pair;
  const auto completed = [](Call& done) noexcept {
    Pair& of = *static_cast<Pair*>(done.owner);
    of.store->cancel(of.second, of.now);
    EXPECT_EQ(of.store->decide_all(of.third, of.now), Completion::later);
  };
  pair.first.completed = completed;
  pair.second.completed = [](Call& done) noexcept { ++static_cast<Asking&>(done).completions; };
  ASSERT_EQ(store_->decide_all(pair.first, now_), Completion::later);
  ASSERT_EQ(store_->decide_all(pair.second, now_), Completion::later);
  authority_.admit(0);
  authority_.admit(0);
  advance();
  EXPECT_EQ(pair.second.completions, 0);
  ASSERT_EQ(authority_.numbered.size(), 1U);
  EXPECT_EQ(store_->calls_in_flight(), 1U);
  EXPECT_EQ(authority_.unflushed, 0U) << "what was asked meanwhile does not wait for the next turn";
  store_->cancel(pair.third, now_);
}

// The node's clock is off: nobody is told a number, and other limits go on.
TEST_F(SharedStoreTest, DoesNotOpenTheBreakerWhereClocksDiffer) {
  const LimitNumber limit = shared(window(10), OnFailure::closed);
  for (std::uint64_t i = 0; i < 20; ++i) {
    Asking call;
    group(call, check(limit, i));
    ASSERT_EQ(decide(call), Completion::later);
    authority_.fail(0, AuthorityOutcome::clocks_differ);
    advance();
    EXPECT_EQ(call.groups[0].verdict, GroupVerdict::closed);
  }
  EXPECT_EQ(store_->shared_counts().breaker_opened, 0U);
}

}  // namespace
}  // namespace sluice::store
