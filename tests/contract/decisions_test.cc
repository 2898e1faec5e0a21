// What is decided: together or apart, exactly, in any order of completion.
#include "base/random.h"
#include "contract/contract_fixture.h"

#include <algorithm>

namespace sluice::contract {
namespace {

class Decisions : public ContractFixture {};

TEST_P(Decisions, ChargeEveryGroupOfAnAdmittedCall) {
  const Check first = check(use(window(5)), "a", 2);
  const Check second = check(use(window(9)), "b", 3);
  const Check third = check(use(window(7)), "c", 1);
  Request request;
  request.of({{first, second}, {third}});
  decide(request);
  EXPECT_TRUE(request.call.admitted);
  for (const Group& group : request.call.all_groups()) {
    EXPECT_EQ(group.verdict, GroupVerdict::admitted);
  }
  EXPECT_EQ(request.decision(0).remaining, 3U);
  EXPECT_EQ(request.decision(1).remaining, 6U);
  EXPECT_EQ(request.decision(2).remaining, 6U);
  EXPECT_EQ(used(first), 2U);
  EXPECT_EQ(used(second), 3U);
  EXPECT_EQ(used(third), 1U);
  keep(request);
}

// Whichever of the limits rejects, and in whichever order the groups are decided.
TEST_P(Decisions, ChargeNothingIfOneGroupRejects) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    open(seed);
    const std::size_t full = seed % 4;
    std::array<Check, 4> checks;
    for (std::size_t i = 0; i < checks.size(); ++i) {
      checks[i] = check(use(window(i == full ? 1 : 5)), std::to_string(i));
    }
    ASSERT_TRUE(admits(checks[full]));
    Request request;
    request.of({{checks[0]}, {checks[1], checks[2]}, {checks[3]}});
    decide(request);
    EXPECT_FALSE(request.call.admitted);
    const std::size_t rejecting = full == 0 ? 0 : full < 3 ? 1 : 2;
    for (std::size_t k = 0; k < 3; ++k) {
      const Group& group = request.call.groups[k];
      if (k == rejecting) {
        EXPECT_EQ(group.verdict, GroupVerdict::rejected);
      } else {
        EXPECT_TRUE(group.verdict == GroupVerdict::admitted ||
                    group.verdict == GroupVerdict::not_asked)
            << k;
      }
    }
    EXPECT_EQ(request.decision(full).verdict, Verdict::rejected);
    for (std::size_t i = 0; i < checks.size(); ++i) {
      EXPECT_EQ(used(checks[i]), i == full ? 1U : 0U) << i;
    }
    // Nor is there anything to refund.
    refund(request);
    EXPECT_EQ(used(checks[full]), 1U);
  }
}

// The numbers of limits that had room are those without the request.
TEST_P(Decisions, TellWhatOthersHaveLeftWithoutARejectedCall) {
  const Check full = check(use(window(1)), "full");
  const Check free = check(use(window(5)), "free", 2);
  ASSERT_TRUE(admits(full));
  Request request;
  request.of({{full, free}});
  decide(request);
  ASSERT_FALSE(request.call.admitted);
  EXPECT_TRUE(request.decision(1).allowed());
  EXPECT_EQ(request.decision(1).remaining, 5U);
  EXPECT_EQ(request.decision(1).retry_after, std::nullopt);
}

TEST_P(Decisions, LetIndependentGroupsGoTheirOwnWays) {
  const Check full = check(use(window(1)), "full");
  const Check free = check(use(window(5)), "free");
  const Check beside = check(use(window(5)), "beside");
  ASSERT_TRUE(admits(full));
  Request request;
  request.of({{free}, {full, beside}}, Call::Kind::independent);
  decide(request);
  EXPECT_FALSE(request.call.admitted) << "one of them was rejected";
  EXPECT_EQ(request.call.groups[0].verdict, GroupVerdict::admitted);
  EXPECT_EQ(request.call.groups[1].verdict, GroupVerdict::rejected);
  EXPECT_EQ(used(free), 1U);
  EXPECT_EQ(used(full), 1U);
  EXPECT_EQ(used(beside), 0U) << "within a group it is all or nothing";
  Holding holding = request.holding(0);
  store_->refund(free, holding, now_);
  EXPECT_EQ(used(free), 0U);
}

TEST_P(Decisions, AdmitIndependentGroupsThatAllHaveRoom) {
  const Check a = check(use(window(5)), "a");
  const Check b = check(use(window(5)), "b");
  Request request;
  request.of({{a}, {b}}, Call::Kind::independent);
  decide(request);
  EXPECT_TRUE(request.call.admitted);
  EXPECT_EQ(used(a) + used(b), 2U);
  keep(request);
}

TEST_P(Decisions, ChargeNothingForAProbe) {
  const LimitNumber limit = use(window(2));
  Check probe = check(limit, "a");
  probe.probe = true;
  const Check other = check(use(window(5)), "b");
  for (int i = 0; i < 5; ++i) {
    Request request;
    request.of({{probe}});
    decide(request);
    EXPECT_TRUE(request.call.admitted);
    refund(request);
  }
  EXPECT_EQ(used(probe), 0U);

  // With others, it takes part in the decision all the same.
  Request together;
  together.of({{probe, other}});
  decide(together);
  EXPECT_TRUE(together.call.admitted);
  keep(together);
  EXPECT_EQ(used(probe), 0U);
  EXPECT_EQ(used(other), 1U);
  ASSERT_TRUE(admits(check(limit, "a", 2)));
  Request rejected;
  rejected.of({{probe}, {other}});
  decide(rejected);
  EXPECT_FALSE(rejected.call.admitted);
  EXPECT_EQ(used(other), 1U);
}

TEST_P(Decisions, AlwaysAllowCostsOfZero) {
  const Check taken = check(use(window(2)), "a", 2);
  ASSERT_TRUE(admits(taken));
  Request request;
  Check peek = taken;
  peek.cost = 0;
  request.of({{peek}});
  decide(request);
  EXPECT_TRUE(request.call.admitted);
  EXPECT_EQ(request.decision().remaining, 0U);
  EXPECT_EQ(request.decision().limit, 2U);
  refund(request);
  EXPECT_EQ(used(taken), 2U);
}

TEST_P(Decisions, NeverAdmitMoreThanACapacity) {
  const Check large = check(use(window(2)), "a", 3);
  Request request;
  request.of({{large}});
  decide(request);
  EXPECT_FALSE(request.call.admitted);
  EXPECT_EQ(request.decision().verdict, Verdict::never);
  EXPECT_EQ(request.decision().retry_after, std::nullopt);
  EXPECT_EQ(request.call.groups[0].verdict, GroupVerdict::rejected);
  EXPECT_EQ(used(large), 0U);
}

// Of the answers of a call the engine finds the binding one: so each group that rejects says how
// long to wait, and a call of one group has the answers of all its limits.
TEST_P(Decisions, TellWhatBinds) {
  const Check hour = check(use(window(1)), "hour");
  Limit short_window = window(1);
  short_window.period = 1min;
  const Check minute = check(use(short_window), "minute");
  pass(30s);
  ASSERT_TRUE(admits(hour));
  ASSERT_TRUE(admits(minute));
  Request request;
  request.of({{minute, hour}});
  decide(request);
  EXPECT_EQ(store::binding(request.call.answered()), 1U);
  EXPECT_EQ(request.decision(0).retry_after, 30s);
  EXPECT_EQ(request.decision(1).retry_after, 1h - 30s);

  request.of({{minute, check(use(window(2)), "large", 3), hour}});
  decide(request);
  EXPECT_EQ(store::binding(request.call.answered()), 1U) << "a wait that never ends is longer";

  pass(1h);
  const Check wide = check(use(window(9)), "wide");
  request.of({{wide, hour, check(use(window(4)), "b", 2)}});
  decide(request);
  ASSERT_TRUE(request.call.admitted);
  EXPECT_EQ(store::binding(request.call.answered()), 1U) << "the least is left";
  keep(request);
}

// Many calls at once: as many are admitted as there is room for, not one more and not one less.
TEST_P(Decisions, AreExactInAnyOrderOfCompletion) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    open(seed);
    const Check one = check(use(window(20)), "a");
    std::vector<std::unique_ptr<Request>> requests;
    for (int i = 0; i < 50; ++i) {
      Request& request = *requests.emplace_back(std::make_unique<Request>());
      request.of({{one}});
      ask(i % 2 == 0 ? *store_ : *other_, request);
    }
    world_->deliver(now_);
    int admitted = 0;
    for (int i = 0; i < 50; ++i) {
      Request& request = *requests[static_cast<std::size_t>(i)];
      ASSERT_TRUE(request.is_over());
      ASSERT_LE(request.completed, 1);
      admitted += request.call.admitted ? 1 : 0;
      Holding holding = request.holding();
      (i % 2 == 0 ? *store_ : *other_).keep(holding);
    }
    EXPECT_EQ(admitted, 20);
    EXPECT_EQ(used(one), 20U);
  }
}

// Several groups, of which any may reject: never more than each admits, and in the end exactly what
// the admitted ones cost is used. Calls that meet may reject each other; alone, they are admitted.
TEST_P(Decisions, OfSeveralGroupsNeverAdmitMoreThanAnyOfThem) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    open(seed);
    Random random{seed};
    const std::array checks{check(use(window(10)), "a"), check(use(window(14)), "b"),
                            check(use(window(12)), "c")};
    std::vector<std::unique_ptr<Request>> requests;
    std::array<std::uint64_t, 3> charged{};
    const auto add = [&] {
      Request& request = *requests.emplace_back(std::make_unique<Request>());
      const std::uint64_t without = random.below(4);
      request.call.clear();
      for (std::size_t i = 0; i < checks.size(); ++i) {
        if (i == without) continue;
        request.call.checks[request.call.count++] = checks[i];
        request.call.group_from(request.call.count - 1);
      }
      ask(request);
    };
    const auto count = [&] {
      world_->deliver(now_);
      charged = {};
      for (const auto& request : requests) {
        ASSERT_TRUE(request->is_over());
        if (!request->call.admitted) continue;
        for (const Check& one : request->call.asked()) {
          for (std::size_t i = 0; i < 3; ++i) charged[i] += one.key == checks[i].key ? 1U : 0U;
        }
      }
      for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(used(checks[i]), charged[i]) << i;
    };
    for (int i = 0; i < 30; ++i) add();
    count();
    // One after another, until nothing has room.
    for (int i = 0; i < 60; ++i) {
      const auto before = charged;
      add();
      count();
      const Call& call = requests.back()->call;
      bool had_room = true;
      for (const Check& one : call.asked()) {
        for (std::size_t j = 0; j < 3; ++j) {
          had_room &= one.key != checks[j].key || before[j] < 10 + (j * 4) % 6;
        }
      }
      ASSERT_EQ(call.admitted, had_room);
    }
    for (const auto& request : requests) keep(*request);
  }
}

TEST_P(Decisions, OfTwoWorkersHaveOneTruth) {
  const Check one = check(use(window(3)), "a");
  Request mine;
  mine.of({{one}});
  Request theirs;
  theirs.of({{one}});
  decide(*store_, mine);
  decide(*other_, theirs);
  EXPECT_EQ(theirs.decision().remaining, 1U);
  EXPECT_EQ(used(one), 2U);
  Holding holding = theirs.holding();
  other_->refund(one, holding, now_);
  EXPECT_EQ(used(one), 1U);
  keep(mine);
}

TEST_P(Decisions, KeepKeysAndLimitsApart) {
  const LimitNumber limit = use(window(3));
  const LimitNumber another = use(window(4));
  EXPECT_TRUE(admits(check(limit, "a")));
  EXPECT_EQ(used(check(limit, "b")), 0U);
  EXPECT_EQ(used(check(another, "c")), 0U);
  EXPECT_EQ(peek(check(another, "c")).limit, 4U);
  EXPECT_EQ(used(check(limit, "a")), 1U);
}

TEST_P(Decisions, GiveEqualLimitsOneNumber) {
  const LimitNumber first = use(window(3));
  EXPECT_EQ(use(window(3)), first);
  EXPECT_NE(use(window(4)), first);
  EXPECT_EQ(store::is_shared(first), !world_->stores().limits().is_local(world_->terms({})));
  for (int i = 0; i < 2; ++i) world_->stores().limits().stop_using(first);
  EXPECT_EQ(use(window(3)), first) << "ended uses leave the others";
}

TEST_P(Decisions, CompleteAtOnceForLocalLimits) {
  const Check one = check(use_local(window(2)), "a");
  const Check two = check(use_local(window(5)), "b");
  EXPECT_FALSE(store::is_shared(one.limit));
  for (const Call::Kind kind : {Call::Kind::all_or_nothing, Call::Kind::independent}) {
    Request request;
    request.of({{one}, {two}}, kind);
    ask(request);
    EXPECT_EQ(request.completion, Completion::now);
    EXPECT_TRUE(request.call.admitted);
    for (const Group& group : request.call.all_groups()) {
      EXPECT_EQ(group.source, Source::local);
      EXPECT_EQ(group.verdict, GroupVerdict::admitted);
    }
    keep(request);
  }
  EXPECT_EQ(used(one), 2U);
  EXPECT_FALSE(admits(one));
}

// Beside limits that are decided elsewhere, they are charged when all the others have room.
TEST_P(Decisions, ChargeLocalLimitsOnlyIfTheOthersAdmit) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    open(seed);
    const Check here = check(use_local(window(3)), "here");
    const Check there = check(use(window(2)), "there");
    std::vector<std::unique_ptr<Request>> requests;
    for (int i = 0; i < 6; ++i) {
      Request& request = *requests.emplace_back(std::make_unique<Request>());
      if (i % 2 == 0) request.of({{here}, {there}});
      if (i % 2 == 1) request.of({{there}, {here}});
      ask(request);
    }
    world_->deliver(now_);
    EXPECT_EQ(used(here), 2U);
    EXPECT_EQ(used(there), 2U);
    for (const auto& request : requests) keep(*request);
  }
}

TEST_P(Decisions, GiveOthersBackIfALocalLimitRejects) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    open(seed);
    const Check here = check(use_local(window(2)), "here");
    const Check there = check(use(window(9)), "there");
    std::vector<std::unique_ptr<Request>> requests;
    for (int i = 0; i < 6; ++i) {
      Request& request = *requests.emplace_back(std::make_unique<Request>());
      request.of({{here}, {there}});
      ask(request);
    }
    world_->deliver(now_);
    EXPECT_EQ(used(here), 2U);
    EXPECT_EQ(used(there), 2U);
    for (const auto& request : requests) keep(*request);
  }
}

TEST_P(Decisions, AreCounted) {
  const Check one = check(use(window(9)), "a", 2);
  Check slot = check(use({.algorithm = Algorithm::concurrency, .amount = 3}), "slots");
  Request request;
  request.of({{one}, {slot}});
  decide(request);
  Holding holding = request.holding(0);
  Holding held = request.holding(1);
  store_->charge(one, now_);
  store_->correct(one, holding, 3, now_);
  store_->correct(one, holding, 1, now_);
  store_->renew(slot, held, now_);
  store_->refund(one, holding, now_);
  store_->refund(slot, held, now_);
  world_->deliver(now_);
  const store::StoreCounts& counts = store_->counts();
  EXPECT_EQ(counts.decides, 1U);
  EXPECT_EQ(counts.charges, 2U);
  EXPECT_EQ(counts.refunds, 3U);
  EXPECT_EQ(counts.renewals, 1U);
  EXPECT_EQ(counts.late, 0U);
  EXPECT_EQ(other_->counts().decides, 0U) << "each store counts its own";
}

INSTANTIATE_TEST_SUITE_P(Contract, Decisions, ::testing::ValuesIn(subjects()), subject_name());

}  // namespace
}  // namespace sluice::contract
