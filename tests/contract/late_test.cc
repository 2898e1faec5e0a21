// What a store promises whose calls may complete later: once, in time, and never after cancel().
#include "base/random.h"
#include "contract/contract_fixture.h"

#include <utility>

namespace sluice::contract {
namespace {

class Late : public ContractFixture {
 protected:
  // A request of which nothing has arrived yet.
  void send(Request& request, const Check& check) {
    request.of({{check}});
    ask(request);
    ASSERT_EQ(request.completion, Completion::later);
    ASSERT_EQ(request.completed, 0);
  }
  // To the end of the budget, by the store's own account.
  void time_out(Request& request) {
    const MonoTime asked = now_.mono;
    for (int turns = 0; !request.is_over(); ++turns) {
      ASSERT_LT(turns, 100);
      ASSERT_LE(store_->wake_at(), asked + world_->budget()) << "too late";
      now_.mono = std::max(now_.mono, store_->wake_at());
      store_->advance(now_);
    }
    ASSERT_EQ(request.completed, 1);
    ASSERT_LE(now_.mono, asked + world_->budget());
  }
  // Nothing of it ever arrives.
  void lose(Request& request, const Check& check) {
    send(request, check);
    world_->lose();
    time_out(request);
  }
};

TEST_P(Late, CompletesOnceAndNotWithinDecideAll) {
  const Check one = check(use(window(5)), "a");
  Request request;
  send(request, one);
  for (int i = 0; i < 3; ++i) world_->deliver(now_);
  EXPECT_EQ(request.completed, 1);
  pass(world_->budget());
  store_->advance(now_);
  world_->deliver(now_);
  EXPECT_EQ(request.completed, 1);
  keep(request);
}

// A caller may do anything with a call that is completed, while it is told.
TEST_P(Late, LetsACallBeReusedAsSoonAsItIsCompleted) {
  const Check one = check(use(window(5)), "a");
  Request first;
  first.of({{one}});
  first.then = [&] {
    if (first.completed > 1) return;
    Holding holding = first.holding();
    store_->refund(one, holding, now_);
    (void)store_->decide_all(first.call, now_);
    first.then = nullptr;  // last: it ends this very function
  };
  ask(first);
  world_->deliver(now_);
  EXPECT_EQ(first.completed, 2);
  EXPECT_EQ(used(one), 1U);
  keep(first);
}

TEST_P(Late, LetsOtherCallsBeCancelledWhileOneIsCompleted) {
  const Check one = check(use(window(5)), "a");
  std::array<Request, 4> requests;
  for (Request& request : requests) {
    request.then = [&] {
      for (Request& other : requests) {
        if (&other != &request) store_->cancel(other.call, now_);
      }
    };
    send(request, one);
  }
  world_->deliver(now_);
  int completed = 0;
  for (Request& request : requests) {
    completed += request.completed;
    if (request.completed > 0) keep(request);
  }
  EXPECT_EQ(completed, 1);
  EXPECT_EQ(used(one), 1U);
}

// ---- the budget ---------------------------------------------------------------------------------

TEST_P(Late, RejectsWithoutReplyWhereRulesAreClosed) {
  const Check one = check(use(window(5), OnFailure::closed), "a");
  Request request;
  lose(request, one);
  EXPECT_FALSE(request.call.admitted);
  EXPECT_EQ(request.call.groups[0].verdict, GroupVerdict::closed);
  EXPECT_EQ(request.call.groups[0].source, Source::closed);
  EXPECT_FALSE(request.call.groups[0].has_answers());
  EXPECT_EQ(store_->counts().late, 1U);
}

TEST_P(Late, AdmitsWithoutReplyWhereRulesAreOpen) {
  const Check one = check(use(window(5), OnFailure::open), "a");
  for (int i = 0; i < 9; ++i) {
    Request request;
    lose(request, one);
    EXPECT_TRUE(request.call.admitted);
    EXPECT_EQ(request.call.groups[0].verdict, GroupVerdict::open);
    EXPECT_EQ(request.call.groups[0].source, Source::open);
    refund(request);
  }
  EXPECT_EQ(store_->counts().late, 9U);
}

TEST_P(Late, SpendsAShareWithoutReplyWhereRulesSaySo) {
  const Check one = check(use(window(8), OnFailure::share), "a");
  int admitted = 0;
  for (int i = 0; i < 12; ++i) {
    Request request;
    lose(request, one);
    const Group& group = request.call.groups[0];
    EXPECT_TRUE(group.has_answers());
    EXPECT_EQ(group.source, Source::share);
    EXPECT_EQ(group.verdict == GroupVerdict::admitted, request.call.admitted);
    EXPECT_EQ(request.decision().allowed(), request.call.admitted);
    admitted += request.call.admitted ? 1 : 0;
    keep(request);
  }
  EXPECT_GT(admitted, 0);
  EXPECT_LE(admitted, 8) << "a share is at most all of it";
}

TEST_P(Late, RefundsWhatAShareHasCharged) {
  const Check one = check(use(window(8), OnFailure::share), "a");
  for (int i = 0; i < 20; ++i) {
    Request request;
    lose(request, one);
    EXPECT_TRUE(request.call.admitted) << i;
    refund(request);
    world_->deliver(now_);
  }
}

// Each group by the word of its own limits; one that is closed is enough.
TEST_P(Late, DecidesEachGroupByItsOwnLimits) {
  const Check open = check(use(window(5), OnFailure::open), "open");
  const Check share = check(use(window(6), OnFailure::share), "share");
  const Check closed = check(use(window(7), OnFailure::closed), "closed");
  const auto decided = [&](Request& request) {
    ask(request);
    world_->lose();
    time_out(request);
  };
  Request lenient;
  lenient.of({{open}, {share}});
  decided(lenient);
  EXPECT_TRUE(lenient.call.admitted);
  EXPECT_EQ(lenient.call.groups[0].source, Source::open);
  EXPECT_EQ(lenient.call.groups[1].source, Source::share);
  keep(lenient);

  Request strict;
  strict.of({{open}, {closed}, {share}});
  decided(strict);
  EXPECT_FALSE(strict.call.admitted);
  EXPECT_EQ(strict.call.groups[1].verdict, GroupVerdict::closed);

  Request apart;
  apart.of({{open}, {closed}, {share}}, Call::Kind::independent);
  decided(apart);
  EXPECT_FALSE(apart.call.admitted);
  EXPECT_EQ(apart.call.groups[0].verdict, GroupVerdict::open);
  EXPECT_EQ(apart.call.groups[1].verdict, GroupVerdict::closed);
  EXPECT_EQ(apart.call.groups[2].verdict, GroupVerdict::admitted);
  keep(apart);
  EXPECT_EQ(store_->counts().late, 3U) << "calls, not groups";
}

// Part of a call was answered in time, and stays valid.
TEST_P(Late, KeepsTheRepliesThatCameInTime) {
  const Check one = check(use(window(5), OnFailure::open), "a");
  const Check two = check(use(window(5), OnFailure::open), "b");
  Request first;
  send(first, one);
  world_->deliver(now_);
  Request second;
  send(second, two);
  world_->lose();
  time_out(second);
  EXPECT_EQ(first.call.groups[0].source, Source::exact);
  EXPECT_EQ(used(one), 1U);
  EXPECT_EQ(used(two), 0U) << "it never arrived";
  keep(first);
}

// ---- replies that come too late -----------------------------------------------------------------

class TooLate : public Late {
 protected:
  // Decided there, in time; the reply comes when the budget is over. What is used then.
  std::uint64_t used_after_late_reply(OnFailure on_failure) {
    const Check one = check(use(window(5), on_failure), "a", 2);
    Request request;
    send(request, one);
    world_->arrive(now_);
    time_out(request);
    world_->deliver(now_);
    EXPECT_EQ(request.completed, 1);
    const std::uint64_t found = used(one);
    keep(request);
    return found;
  }
};

TEST_P(TooLate, AreRefundedIfTheRequestWasRejected) {
  EXPECT_EQ(used_after_late_reply(OnFailure::closed), 0U);
}

TEST_P(TooLate, CountOnceIfTheRequestWasAdmitted) {
  EXPECT_EQ(used_after_late_reply(OnFailure::open), 2U);
}

TEST_P(TooLate, CountOnceIfTheShareAdmitted) {
  EXPECT_EQ(used_after_late_reply(OnFailure::share), 2U);
}

TEST_P(TooLate, AreRefundedWithTheRequest) {
  const Check one = check(use(window(8), OnFailure::share), "a", 2);
  for (const bool reply_first : {true, false}) {
    Request request;
    send(request, one);
    world_->arrive(now_);
    time_out(request);
    ASSERT_TRUE(request.call.admitted);
    if (reply_first) world_->deliver(now_);
    refund(request);
    EXPECT_EQ(used(one), 0U) << reply_first;
  }
}

// ---- cancel -------------------------------------------------------------------------------------

TEST_P(Late, NeverCompletesACancelledCall) {
  const Check one = check(use(window(5)), "a");
  auto request = std::make_unique<Request>();
  send(*request, one);
  store_->cancel(request->call, now_);
  world_->deliver(now_);
  pass(2 * world_->budget());
  store_->advance(now_);
  EXPECT_EQ(request->completed, 0);
  EXPECT_EQ(used(one), 0U);
}

TEST_P(Late, LetsACallBeDestroyedOnceItIsCancelled) {
  const Check one = check(use(window(5)), "a");
  for (const bool arrived : {false, true}) {
    auto request = std::make_unique<Request>();
    send(*request, one);
    if (arrived) world_->arrive(now_);
    store_->cancel(request->call, now_);
    request.reset();
    world_->deliver(now_);
    pass(2 * world_->budget());
    store_->advance(now_);
    EXPECT_EQ(used(one), 0U) << "given back";
  }
}

TEST_P(Late, LetsACallBeReusedOnceItIsCancelled) {
  const Check left = check(use(window(5)), "left");
  const Check here = check(use(window(6)), "here");
  Request request;
  send(request, left);
  world_->arrive(now_);
  store_->cancel(request.call, now_);
  send(request, here);
  world_->deliver(now_);
  EXPECT_EQ(request.completed, 1);
  EXPECT_EQ(request.decision().limit, 6U) << "not the reply to the first";
  EXPECT_EQ(used(left), 0U);
  EXPECT_EQ(used(here), 1U);
  keep(request);
}

// Some groups have been decided by then, others not, others are local.
TEST_P(Late, GivesBackAllGroupsOfACancelledCall) {
  for (const Call::Kind kind : {Call::Kind::all_or_nothing, Call::Kind::independent}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(seed);
      open(seed);
      const std::array checks{check(use(window(5)), "a"), check(use(window(6)), "b"),
                              check(use_local(window(7)), "c")};
      Request request;
      request.of({{checks[0]}, {checks[1]}, {checks[2]}}, kind);
      ask(request);
      if (seed % 2 == 0) world_->arrive(now_);
      ASSERT_FALSE(request.is_over());
      store_->cancel(request.call, now_);
      world_->deliver(now_);
      for (const Check& one : checks) EXPECT_EQ(used(one), 0U);
    }
  }
}

// ---- local limits beside ------------------------------------------------------------------------

TEST_P(Late, DecidesLocalLimitsAtOnceWhileOthersAreInFlight) {
  Request waiting;
  send(waiting, check(use(window(5)), "a"));
  const Check here = check(use_local(window(5)), "here");
  Request local;
  local.of({{here}});
  ask(local);
  EXPECT_EQ(local.completion, Completion::now);
  EXPECT_TRUE(local.call.admitted);
  store_->cancel(waiting.call, now_);
}

TEST_P(Late, AsksNoSharedLimitOfACallThatALocalOneRejects) {
  const Check here = check(use_local(window(1)), "here");
  const Check there = check(use(window(5)), "there");
  ASSERT_TRUE(admits(here));
  Request request;
  request.of({{there}, {here}});
  ask(request);
  EXPECT_EQ(request.completion, Completion::now);
  EXPECT_FALSE(request.call.admitted);
  EXPECT_EQ(request.call.groups[0].verdict, GroupVerdict::not_asked);
  EXPECT_EQ(request.call.groups[1].verdict, GroupVerdict::rejected);
  EXPECT_EQ(request.decision(1).retry_after, 1h);
  EXPECT_EQ(used(there), 0U);
}

TEST_P(Late, ChargesNoLocalLimitOfACallThatIsClosed) {
  const Check here = check(use_local(window(5)), "here");
  const Check there = check(use(window(5), OnFailure::closed), "there");
  Request request;
  request.of({{here}, {there}});
  ask(request);
  world_->lose();
  time_out(request);
  EXPECT_FALSE(request.call.admitted);
  EXPECT_EQ(used(here), 0U);
}

TEST_P(Late, ChargesLocalLimitsOfACallThatIsOpen) {
  const Check here = check(use_local(window(5)), "here");
  const Check there = check(use(window(5), OnFailure::open), "there");
  Request request;
  request.of({{here}, {there}});
  ask(request);
  world_->lose();
  time_out(request);
  EXPECT_TRUE(request.call.admitted);
  EXPECT_EQ(request.call.groups[0].source, Source::local);
  EXPECT_EQ(request.call.groups[1].source, Source::open);
  EXPECT_EQ(used(here), 1U);
  keep(request);
}

// ---- all of it ----------------------------------------------------------------------------------

// Calls that are answered, timed out and cancelled at random: each completes once or never, none
// after its budget, and in the end exactly what was admitted is used.
TEST_P(Late, KeepsItsBooksInAnyOrderOfEvents) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    open(seed);
    Random random{seed};
    const std::array checks{check(use(window(40)), "a"), check(use(window(30)), "b", 2),
                            check(use_local(window(50)), "c")};
    struct Sent {
      Request request;
      MonoTime asked;
      bool cancelled = false;
    };
    std::vector<std::unique_ptr<Sent>> sent;
    for (int step = 0; step < 80; ++step) {
      switch (random.below(8)) {
        default: {
          Sent& one = *sent.emplace_back(std::make_unique<Sent>());
          one.asked = now_.mono;
          if (random.below(2) == 0) {
            one.request.of({{checks[0]}, {checks[1]}, {checks[2]}});
          } else {
            one.request.of({{checks[random.below(2)]}});
          }
          ask(one.request);
          break;
        }
        case 0: world_->deliver(now_); break;
        case 1:
        case 2: world_->arrive(now_); break;
        case 3:
        case 4:
          now_.mono += world_->budget() / 3;
          store_->advance(now_);
          break;
        case 5:
          if (sent.empty()) break;
          Sent& one = *sent[random.below(sent.size())];
          if (one.request.is_over() || one.cancelled) break;
          store_->cancel(one.request.call, now_);
          one.cancelled = true;
          break;
      }
      for (const auto& one : sent) {
        if (one->cancelled) {
          ASSERT_EQ(one->request.completed, 0);
          continue;
        }
        ASSERT_LE(one->request.completed, 1);
        const bool has_time = now_.mono < one->asked + world_->budget();
        ASSERT_TRUE(one->request.is_over() || has_time) << step;
      }
    }
    pass(world_->budget());
    store_->advance(now_);
    world_->deliver(now_);
    std::array<std::uint64_t, 3> charged{};
    for (const auto& one : sent) {
      if (one->cancelled) continue;
      ASSERT_TRUE(one->request.is_over());
      if (!one->request.call.admitted) continue;
      for (const Check& of : one->request.call.asked()) {
        for (std::size_t i = 0; i < 3; ++i) {
          if (of.key == checks[i].key) charged[i] += of.cost;
        }
      }
      keep(one->request);
    }
    for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(used(checks[i]), charged[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, Late, ::testing::ValuesIn(late_subjects()), subject_name());
INSTANTIATE_TEST_SUITE_P(Contract, TooLate, ::testing::ValuesIn(late_subjects()), subject_name());

}  // namespace
}  // namespace sluice::contract
