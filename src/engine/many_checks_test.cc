// Requests that many rules concern: what may refuse is bounded over both phases, and what only
// tells takes nobody's place.
#include "engine/engine_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using Kind = rules::Per::Kind;

class ManyChecks : public EngineFixture {
 protected:
  static rules::Rule with(std::string name, std::size_t limits) {
    rules::Rule made = rule(std::move(name), {});
    for (std::size_t i = 0; i < limits; ++i) {
      made.limits.push_back(limit(std::to_string(100 + i) + "/1h", Algorithm::fixed_window));
      made.limits.back().name = "l" + std::to_string(i);
    }
    return made;
  }
  static rules::Rule early(std::size_t limits) {
    rules::Rule made = with("early", limits);
    made.before_auth = true;
    return made;
  }
  static rules::Rule shadow(std::size_t limits, std::string name = "shadow") {
    rules::Rule made = with(std::move(name), limits);
    made.action.kind = rules::Action::Kind::shadow;
    return made;
  }
  std::size_t told() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(op_.limits(), [](const LimitOutcome& one) { return one.shadow; }));
  }
};

struct Numbers {
  std::size_t early;
  std::size_t plain;
  std::size_t shadow;
};

TEST_F(ManyChecks, AreCountedOverBothPhases) {
  for (const Numbers& n :
       {Numbers{22, 22, 22}, Numbers{20, 20, 0}, Numbers{16, 16, 32}, Numbers{32, 32, 32},
        Numbers{32, 0, 32}, Numbers{0, 32, 32}, Numbers{32, 1, 32}, Numbers{1, 32, 32},
        Numbers{0, 33, 0}, Numbers{33, 0, 0}, Numbers{31, 1, 33}, Numbers{0, 0, 64}}) {
    SCOPED_TRACE(testing::Message() << n.early << " " << n.plain << " " << n.shadow);
    const std::uint64_t shed = worker_->counters().too_many_rules;
    const std::uint64_t left_out = worker_->counters().shadow_checks_skipped;
    use({early(n.early), with("plain", n.plain), shadow(n.shadow)});
    ASSERT_EQ(decide(op_, {}), store::Completion::now);
    const bool passes = n.early + n.plain <= 32;
    EXPECT_EQ(op_.action, passes ? Action::pass : Action::reject);
    EXPECT_EQ(op_.status, passes ? 200 : 503);
    EXPECT_EQ(op_.reason, passes ? Reason::allowed : Reason::too_many_rules);
    EXPECT_EQ(worker_->counters().too_many_rules - shed, passes ? 0U : 1U);
    if (passes) {
      const std::size_t shadows = n.shadow <= 32 ? n.shadow : 0;
      EXPECT_EQ(op_.limits().size(), n.early + n.plain + shadows);
      EXPECT_EQ(told(), shadows);
      EXPECT_EQ(worker_->counters().shadow_checks_skipped - left_out, n.shadow <= 32 ? 0U : 1U);
    }
    worker_->settle(op_, nullptr, now_);
  }
}

// Every charge can be given back, also those of the last rules.
TEST_F(ManyChecks, AreAllGivenBack) {
  rules::Rule plain = with("plain", 32);
  rules::Rule quiet = shadow(32);
  for (rules::Rule* one : {&plain, &quiet}) one->count = rules::Count{.statuses = {{500, 599}}};
  use({plain, quiet});
  for (int i = 0; i < 300; ++i) ASSERT_EQ(ask({}, 200), Action::pass) << i;
  EXPECT_EQ(worker_->counters().would_refuse, 0U);
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  for (const LimitOutcome& one : op_.limits()) {
    EXPECT_EQ(one.decision.remaining + 1, one.decision.limit);
  }
}

// Each of them has room for a late cost, which can be refunded like the rest.
TEST_F(ManyChecks, TakeLateCostsThatCanBeGivenBack) {
  rules::Rule plain = with("plain", 32);
  rules::Rule quiet = shadow(32);
  for (rules::Rule* one : {&plain, &quiet}) one->count = rules::Count{.statuses = {{500, 599}}};
  use({plain, quiet});
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  worker_->correct_cost(op_, 3, now_);
  const ResponseView response{.status = 200};
  worker_->settle(op_, &response, now_);
  EXPECT_EQ(local_->counts().charges_unrefundable, 0U);
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  for (const LimitOutcome& one : op_.limits()) {
    EXPECT_EQ(one.decision.remaining + 1, one.decision.limit);
  }
}

TEST_F(ManyChecks, OfShadowsShedNothing) {
  std::vector<rules::Rule> all{rule("real", {limit("2/1h")})};
  for (int i = 0; i < 300; ++i) all.push_back(shadow(1, "shadow" + std::to_string(i)));
  use(all);
  EXPECT_EQ(ask({}), Action::pass);
  EXPECT_EQ(worker_->counters().shadow_checks_skipped, 300U - 32U);
  EXPECT_EQ(passed(5, {}), 1);
  EXPECT_EQ(rule_, "real");
  EXPECT_EQ(reason_, Reason::limited);
  EXPECT_EQ(worker_->counters().too_many_rules, 0U);
}

// Part of a rule would count what the whole of it does not.
TEST_F(ManyChecks, OfAShadowAreAllToldOrNone) {
  use({shadow(20, "first"), shadow(20, "second"), shadow(12, "third")});
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  EXPECT_EQ(told(), 32U);
  for (const LimitOutcome& one : op_.limits()) EXPECT_NE(one.rule->name, "second");
  EXPECT_EQ(worker_->counters().shadow_checks_skipped, 1U);
}

// Of a group one applies, however many match.
TEST_F(ManyChecks, OfAGroupAreThoseOfOneRule) {
  std::vector<rules::Rule> all;
  for (int i = 0; i < 300; ++i) {
    all.push_back(rule("r" + std::to_string(i), {limit("5/1h")}));
    all.back().group = "g";
    if (i == 207) all.back().match.paths = {"/v1/**"};
    if (i == 211) all.back().match.paths = {"/v1/orders"};
  }
  use(all);
  ASSERT_EQ(ask({.target = "/v1/orders"}), Action::pass);
  EXPECT_EQ(rule_, "r211");
  ASSERT_EQ(ask({.target = "/v1/else"}), Action::pass);
  EXPECT_EQ(rule_, "r207");
  ASSERT_EQ(ask({.target = "/"}), Action::pass);
  EXPECT_EQ(rule_, "r0") << "the first of the file";
}

// 40 groups of two, of which 8 concern the request by more than their rest.
TEST_F(ManyChecks, OfManyGroupsAreThoseOfTheirWinners) {
  for (const std::size_t groups : {32U, 33U}) {
    std::vector<rules::Rule> all;
    for (std::size_t i = 0; i < groups; ++i) {
      for (const char* path : {"/**", "/a"}) {
        all.push_back(rule("r" + std::to_string(i) + path, {limit("5/1h")}));
        all.back().group = "g" + std::to_string(i);
        all.back().match.paths = {path};
      }
    }
    use(all);
    EXPECT_EQ(ask({.target = "/a"}), groups == 32 ? Action::pass : Action::reject);
    EXPECT_EQ(ask({.target = "/b"}), groups == 32 ? Action::pass : Action::reject);
  }
}

TEST_F(ManyChecks, AreOnlyThoseThatAreNotSkipped) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("x-" + std::to_string(i));
  std::vector<rules::Rule> all;
  for (const std::string& name : names) {
    all.push_back(rule(name, {limit("1/1h")}, {per(Kind::header, name)}));
    all.back().on_missing = rules::OnMissing::skip;
  }
  use(all);
  std::vector<HeaderView> headers;
  for (int i = 0; i < 32; ++i) headers.push_back({names[99 - static_cast<std::size_t>(i)], "a"});
  EXPECT_EQ(ask({.headers = headers}), Action::pass);
  EXPECT_EQ(ask({.headers = headers}), Action::reject);
  EXPECT_EQ(reason_, Reason::limited);
  headers.push_back({"x-1", "a"});
  EXPECT_EQ(ask({.headers = headers}), Action::reject);
  EXPECT_EQ(reason_, Reason::too_many_rules) << "33 apply";
}

}  // namespace
}  // namespace sluice::engine
