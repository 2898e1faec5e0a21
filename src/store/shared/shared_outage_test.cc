// The shared store while the authority fails, and rejections that it remembers.
#include "store/shared/shared_store_fixture.h"

#include <gtest/gtest.h>

namespace sluice::store {
namespace {

using Kind = ScriptedAuthority::Asked::Kind;

// ---- the breaker --------------------------------------------------------------------------------

TEST_F(SharedStoreTest, DoesNotWaitWhileTheBreakerIsOpen) {
  const LimitNumber limit = shared(window(10), OnFailure::open);
  open_breaker(limit);
  for (std::uint64_t i = 0; i < 10; ++i) {
    Asking call;
    group(call, check(limit, i));
    EXPECT_EQ(decide(call), Completion::now);
    EXPECT_EQ(call.groups[0].source, Source::open);
  }
  EXPECT_TRUE(authority_.decisions.empty());
  EXPECT_EQ(store_->shared_counts().breaker, 10U);
}

TEST_F(SharedStoreTest, ClosesTheBreakerAfterGoodProbes) {
  const LimitNumber limit = shared(window(10), OnFailure::closed);
  open_breaker(limit);
  std::uint64_t probes = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    pass(10ms);
    Asking call;
    group(call, check(limit, i));
    if (decide(call) == Completion::later) {
      EXPECT_EQ(probes, Breaker::kGood);
      EXPECT_LE(i, 45U) << "three probes, 150 ms apart at most";
      store_->cancel(call, now_);
      return;
    }
    if (authority_.decisions.empty()) continue;
    ++probes;
    authority_.admit();
    advance(1ms);
    // The request was rejected; its probe's charge goes back.
    ASSERT_EQ(authority_.numbered.size(), probes);
    EXPECT_EQ(authority_.numbered.back().kind, Kind::refund);
  }
  FAIL() << "it stayed open";
}

// A shard that fails takes no other one with it.
TEST_F(SharedStoreTest, HasABreakerForEachShard) {
  authority_.shards = 2;
  const LimitNumber limit = shared(window(10), OnFailure::open);
  authority_.is_connected = false;
  for (std::uint64_t i = 0; i < Breaker::kFailures; ++i) {
    Asking call;
    group(call, check(limit, 2 * i));
    EXPECT_EQ(decide(call), Completion::now);
  }
  authority_.is_connected = true;
  Asking other;
  group(other, check(limit, 1));
  EXPECT_EQ(decide(other), Completion::later);
  store_->cancel(other, now_);
  Asking same;
  group(same, check(limit, 2));
  EXPECT_EQ(decide(same), Completion::now);
}

// What was spent meanwhile is charged when the authority is back, all of a key at once, also where
// no request comes.
TEST_F(SharedStoreTest, SettlesAnOutageWhenItEnds) {
  const LimitNumber limit = shared(window(1000));
  open_breaker(limit);
  for (int i = 0; i < 7; ++i) {
    Asking call;
    group(call, check(limit, 1, 3));
    ASSERT_EQ(decide(call), Completion::now);
    ASSERT_TRUE(call.admitted);
  }
  const std::size_t keys = 1 + Breaker::kFailures;
  EXPECT_EQ(store_->settlements_waiting(), keys);
  std::uint64_t settled = 0;
  for (int i = 0; i < 100 && store_->settlements_waiting() > 0; ++i) {
    advance(50ms);
    while (!authority_.numbered.empty()) {
      EXPECT_EQ(authority_.numbered[0].kind, Kind::settle);
      settled += authority_.numbered[0].costs[0];
      authority_.charged(0, 1, 1);
    }
  }
  EXPECT_EQ(settled, 7U * 3 + Breaker::kFailures);
  EXPECT_EQ(store_->shared_counts().settled, settled);
}

// A request of an outage that turns out not to count is not settled.
TEST_F(SharedStoreTest, DoesNotSettleWhatWasRefunded) {
  const LimitNumber limit = shared(window(1000));
  open_breaker(limit);
  Asking call;
  group(call, check(limit, 1, 3));
  ASSERT_EQ(decide(call), Completion::now);
  Holding held = holding(call.answers[0].charge, 3);
  store_->refund(call.checks[0], held, now_);
  EXPECT_EQ(store_->settlements_waiting(), Breaker::kFailures);
}

TEST_F(SharedStoreTest, CountsSettlementsThatFindNoPlace) {
  options_.settlements_max = 8;
  store_ = std::make_unique<SharedStore>(*table_, limits_, authority_, options_);
  const LimitNumber limit = shared(window(1000), OnFailure::open);
  open_breaker(limit);
  for (std::uint64_t i = 0; i < 20; ++i) {
    Asking call;
    group(call, check(limit, i, 2));
    ASSERT_EQ(decide(call), Completion::now);
  }
  EXPECT_EQ(store_->settlements_waiting(), 8U);
  EXPECT_EQ(store_->shared_counts().settlements_dropped, (20 + 5 - 8) * 2U);
}

// ---- without places, or without a key
// ------------------------------------------------------------

TEST_F(SharedStoreTest, FollowsOnFailureWithoutAPlace) {
  options_.calls_max = 1;
  store_ = std::make_unique<SharedStore>(*table_, limits_, authority_, options_);
  const LimitNumber limit = shared(window(10), OnFailure::open);
  Asking first;
  group(first, check(limit, 1));
  ASSERT_EQ(decide(first), Completion::later);
  Asking second;
  group(second, check(limit, 2));
  EXPECT_EQ(decide(second), Completion::now);
  EXPECT_EQ(second.groups[0].verdict, GroupVerdict::open);
  EXPECT_EQ(store_->shared_counts().no_room, 1U);
  store_->cancel(first, now_);
}

// Without the cluster's secret, keys mean nothing to the authority: nothing is asked or settled.
TEST_F(SharedStoreTest, FollowsOnFailureUntilTheSecretIsKnown) {
  SharedLimits early{*table_, &compile_for_test, kNodes};
  SharedStore store{*table_, early, authority_, options_};
  const Sharing sharing{.mode = Mode::exact};
  const LimitNumber before = early.use(window(10), sharing, now_).value();
  Asking call;
  group(call, check(before, 1));
  EXPECT_EQ(store.decide_all(call, now_), Completion::now);
  EXPECT_EQ(call.groups[0].source, Source::share);
  EXPECT_EQ(store.settlements_waiting(), 0U);
  EXPECT_EQ(store.shared_counts().no_secret, 1U);

  early.set_shared_secret({.first = 1, .second = 2});
  EXPECT_EQ(store.decide_all(call, now_), Completion::now) << "its key is of before";
  const LimitNumber now_known = early.use(window(10), sharing, now_).value();
  EXPECT_NE(now_known, before);
  Asking known;
  group(known, check(now_known, 1));
  EXPECT_EQ(store.decide_all(known, now_), Completion::later);
  store.cancel(known, now_);
}

// ---- rejections that are remembered
// --------------------------------------------------------------

TEST_F(SharedStoreTest, RemembersARejectionForItsTime) {
  const LimitNumber limit = shared(window(10));
  Asking call;
  group(call, check(limit, 1, 2));
  ASSERT_EQ(decide(call), Completion::later);
  pass(5ms);
  authority_.reject(0, 1, 400ms);
  advance();
  ASSERT_FALSE(call.admitted);

  pass(95ms);
  Asking again;
  group(again, check(limit, 1, 2));
  EXPECT_EQ(decide(again), Completion::now);
  EXPECT_FALSE(again.admitted);
  EXPECT_EQ(again.groups[0].source, Source::denied_until);
  EXPECT_EQ(again.answers[0].decision.retry_after, 300ms) << "counted from before it was asked";
  EXPECT_EQ(again.answers[0].decision.remaining, 1U);

  Asking smaller;
  group(smaller, check(limit, 1, 1));
  EXPECT_EQ(decide(smaller), Completion::later) << "there is room for one";
  store_->cancel(smaller, now_);

  pass(300ms);
  EXPECT_EQ(decide(again), Completion::later) << "its time is over";
  store_->cancel(again, now_);
}

// A hammering client costs the authority one call per second.
TEST_F(SharedStoreTest, RemembersARejectionForASecondAtMost) {
  const LimitNumber limit = shared(window(10));
  int asked = 0;
  for (int i = 0; i < 5000; ++i) {
    pass(1ms);
    Asking call;
    group(call, check(limit, 1));
    if (decide(call) == Completion::now) continue;
    ++asked;
    authority_.reject(0, 0, 1h);
    advance();
  }
  EXPECT_EQ(asked, 5);
}

TEST_F(SharedStoreTest, RemembersNoRejectionThatSomethingMayShorten) {
  Limit counting = window(10);
  counting.count_rejected = true;
  Check refunded = check(shared(window(10)), 1);
  refunded.may_be_refunded = true;
  const LimitNumber slots =
      shared({.algorithm = Algorithm::concurrency, .amount = 10, .slot_ttl = 60s});
  for (const Check& of : {refunded, check(shared(counting), 2), check(slots, 3)}) {
    for (int i = 0; i < 2; ++i) {
      Asking call;
      group(call, of);
      ASSERT_EQ(decide(call), Completion::later);
      authority_.reject();
      advance();
    }
  }
}

TEST_F(SharedStoreTest, ForgetsARejectionWhenSomethingIsGivenBack) {
  const LimitNumber limit = shared(window(10));
  Asking call;
  group(call, check(limit, 1));
  ASSERT_EQ(decide(call), Completion::later);
  authority_.reject();
  advance();
  Holding held = holding({.limit = limit, .receipt = {.mark = 1, .cost = 1}}, 1);
  store_->refund(call.checks[0], held, now_);
  EXPECT_EQ(decide(call), Completion::later);
  store_->cancel(call, now_);
}

}  // namespace
}  // namespace sluice::store
