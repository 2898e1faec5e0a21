// Shadow rules: they count what they would count if they were enforced, and change nothing.
#include "engine/engine_fixture.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using Kind = rules::Per::Kind;

class Shadows : public EngineFixture {
 protected:
  static rules::Rule quietly(rules::Rule made) {
    made.action.kind = rules::Action::Kind::shadow;
    return made;
  }
  // What the limits of a shadow say to one more request, which is then taken back.
  std::vector<std::uint64_t> left() {
    EXPECT_EQ(decide(op_, {}), store::Completion::now);
    std::vector<std::uint64_t> all;
    for (const LimitOutcome& one : op_.limits()) {
      if (one.shadow) all.push_back(one.decision.remaining);
    }
    worker_->abandon(op_, now_);
    return all;
  }
  std::uint64_t would_refuse() const { return worker_->counters().would_refuse; }
};

TEST_F(Shadows, GiveBackWhatDoesNotCount) {
  rules::Rule failures = quietly(rule("failures", {limit("3/1h")}));
  failures.count = rules::Count{.statuses = {{401, 401}}};
  use({failures});
  EXPECT_EQ(passed(10, {}, 200), 10);
  EXPECT_EQ(would_refuse(), 0U);
  EXPECT_EQ(passed(10, {}, 401), 10);
  EXPECT_EQ(would_refuse(), 7U) << "three counted, and then it was full";
}

TEST_F(Shadows, ChargeAfterwardsIfTheRuleSaysSo) {
  rules::Rule failures = quietly(rule("failures", {limit("3/1h")}));
  failures.count = rules::Count{.statuses = {{401, 401}}, .after = true};
  use({failures});
  EXPECT_EQ(passed(10, {}, 200), 10);
  EXPECT_EQ(would_refuse(), 0U);
  EXPECT_EQ(passed(10, {}, 401), 10);
  EXPECT_EQ(would_refuse(), 7U);
}

TEST_F(Shadows, ReturnTheirSlots) {
  use({quietly(rule("flight", {limit("2", Algorithm::concurrency)}))});
  EXPECT_EQ(passed(10, {}), 10);
  EXPECT_EQ(would_refuse(), 0U) << "one after the other";
  std::array<Op, 5> ops;
  for (Op& op : ops) ASSERT_EQ(decide(op, {}), store::Completion::now);
  EXPECT_EQ(would_refuse(), 3U);
  for (Op& op : ops) worker_->settle(op, nullptr, now_);
  EXPECT_EQ(left(), std::vector<std::uint64_t>{1});
}

TEST_F(Shadows, RenewTheirSlots) {
  rules::Rule flight = quietly(rule("flight", {limit("1", Algorithm::concurrency)}));
  flight.limits[0].limit.slot_ttl = 10s;
  use({flight});
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  EXPECT_EQ(op_.renew_every(), 5s);
  for (int i = 1; i <= 6; ++i) {
    now_ = at(5s * i);
    worker_->renew(op_, now_);
  }
  Op other;
  ASSERT_EQ(decide(other, {}), store::Completion::now);
  EXPECT_EQ(would_refuse(), 1U) << "half a minute on";
  worker_->settle(other, nullptr, now_);
  worker_->settle(op_, nullptr, now_);
}

// A request that one of its limits would refuse is charged by none of them.
TEST_F(Shadows, ChargeAllTheirLimitsOrNone) {
  use({quietly(rule(
      "two", {limit("2/1m", Algorithm::fixed_window), limit("10/1h", Algorithm::fixed_window)}))});
  EXPECT_EQ(passed(8, {}), 8);
  EXPECT_EQ(would_refuse(), 6U) << "once for each request, not for each limit";
  now_ = at(2min);
  EXPECT_EQ(left(), (std::vector<std::uint64_t>{1, 7})) << "two of the hour are used";
}

TEST_F(Shadows, AreAskedEachByItself) {
  use({quietly(rule("small", {limit("1/1h")})), quietly(rule("large", {limit("9/1h")}))});
  EXPECT_EQ(passed(5, {}), 5);
  EXPECT_EQ(left(), (std::vector<std::uint64_t>{0, 3})) << "the small one is full";
}

TEST_F(Shadows, CountNothingThatWasRefused) {
  use({rule("real", {limit("3/1h")}), quietly(rule("shadow", {limit("100/1h")}))});
  EXPECT_EQ(passed(50, {}), 3);
  use({quietly(rule("shadow", {limit("100/1h")}))});
  EXPECT_EQ(left(), std::vector<std::uint64_t>{96});
}

TEST_F(Shadows, GetBackWhatWasNeverPassedOn) {
  use({quietly(rule("shadow", {limit("2/1h")}))});
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(decide(op_, {}), store::Completion::now);
    worker_->abandon(op_, now_);
  }
  EXPECT_EQ(would_refuse(), 0U);
}

TEST_F(Shadows, CorrectACostLikeTheOthers) {
  use({quietly(rule("shadow", {limit("10/1h")}))});
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  worker_->correct_cost(op_, 6, now_);
  worker_->settle(op_, nullptr, now_);
  EXPECT_EQ(left(), std::vector<std::uint64_t>{3});
}

// The same requests, with shadows of all kinds beside the rules and without: the same answers.
TEST_F(Shadows, ChangeNoAnswer) {
  rules::Rule real =
      rule("real", {limit("20/1m", Algorithm::fixed_window), limit("30/1h")}, {per(Kind::ip)});
  real.block = rules::Block{.duration = 30s, .threshold = 2};
  rules::Rule failures = rule("failures", {limit("7/1m")}, {per(Kind::ip)});
  failures.count = rules::Count{.statuses = {{500, 599}}};
  rules::Rule flight = rule("flight", {limit("1", Algorithm::concurrency)});
  rules::Rule early = rule("early", {limit("50/1h")}, {per(Kind::ip)});
  early.before_auth = true;
  std::vector<rules::Rule> shadows;
  for (const rules::Rule& one : {real, failures, flight, early}) {
    rules::Rule quiet = quietly(one);
    quiet.name = "quiet-" + one.name;
    quiet.block.reset();
    for (rules::RuleLimit& each : quiet.limits) each.limit.amount = 1;
    shadows.push_back(quiet);
  }
  std::array<std::vector<Decision>, 2> said;
  std::array<std::vector<std::string>, 2> by;
  for (std::size_t round = 0; round < 2; ++round) {
    const Nanos begin = round * 1000h;
    now_ = at(begin);
    std::vector<rules::Rule> all{real, failures, flight, early};
    if (round == 1) all.insert(all.begin(), shadows.begin(), shadows.end());
    use(all);
    for (int i = 0; i < 200; ++i) {
      now_ = at(begin + 1s * i);
      const Action action = ask({.ip = i % 3 == 0 ? "192.0.2.1" : "192.0.2.2"}, i % 2 ? 200 : 500);
      said[round].push_back(decision_);
      by[round].push_back(rule_ + " " + std::string{to_string(reason_)} + " " +
                          std::to_string(status_) + (action == Action::pass ? "+" : "-"));
    }
  }
  EXPECT_EQ(said[0], said[1]);
  EXPECT_EQ(by[0], by[1]);
  EXPECT_GT(would_refuse(), 0U);
}

}  // namespace
}  // namespace sluice::engine
