// Requests that are held: their places, and their turns.
#include "engine/engine_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using Kind = rules::Per::Kind;

class Queues : public EngineFixture {
 protected:
  static rules::Rule pacing(std::uint32_t max_queued, std::string name = "paced") {
    rules::Rule made =
        rule(std::move(name), {limit("1/1s", Algorithm::leaky_bucket)}, {per(Kind::ip)});
    made.limits[0].limit.max_delay = 60s;
    made.action = {.kind = rules::Action::Kind::queue, .max_delay = 60s, .max_queued = max_queued};
    return made;
  }
  // Instead of what is there.
  void replace(std::vector<rules::Rule> all) {
    auto made = Snapshot::make(
        std::make_shared<const rules::RuleSet>(rules::RuleList{.rules = std::move(all)}), {},
        *limits_, now_, snapshot_.get());
    ASSERT_TRUE(made) << made.error().text();
    snapshot_ = *made;
    worker_->use(snapshot_);
  }
  Reason hold(Op& op, const Sent& sent = {}) {
    EXPECT_EQ(decide(op, sent), store::Completion::now);
    return op.reason;
  }

  std::shared_ptr<const Snapshot> snapshot_;
};

// ---- places -----------------------------------------------------------------------------------

TEST_F(Queues, HoldOnlySoManyRequests) {
  replace({pacing(2)});
  std::array<Op, 4> ops;
  for (Op& op : ops) ASSERT_EQ(decide(op, {}), store::Completion::now);
  EXPECT_EQ(ops[0].decision.delay, 0s);
  EXPECT_EQ(ops[1].decision.delay, 1s);
  EXPECT_EQ(ops[2].decision.delay, 2s);
  EXPECT_EQ(ops[3].action, Action::reject);
  EXPECT_EQ(ops[3].reason, Reason::queue_full);
  EXPECT_EQ(ops[3].status, 429);
  EXPECT_EQ(ops[3].decision.retry_after, 3s);

  // One has waited long enough and goes on: there is room for another, behind those two, since the
  // one that was refused has left no trace.
  worker_->released(ops[1]);
  worker_->settle(ops[3], nullptr, now_);
  ASSERT_EQ(decide(ops[3], {}), store::Completion::now);
  EXPECT_EQ(ops[3].action, Action::pass);
  EXPECT_EQ(ops[3].decision.delay, 3s);
  for (Op& op : ops) worker_->settle(op, nullptr, now_);
}

TEST_F(Queues, HaveRoomAgainWhenSomebodyLeaves) {
  replace({pacing(1)});
  std::array<Op, 3> ops;
  for (Op& op : ops) ASSERT_EQ(decide(op, {}), store::Completion::now);
  EXPECT_EQ(ops[2].action, Action::reject);
  worker_->abandon(ops[1], now_);
  worker_->settle(ops[2], nullptr, now_);
  ASSERT_EQ(decide(ops[2], {}), store::Completion::now);
  EXPECT_EQ(ops[2].decision.delay, 1s) << "its place and its turn are free";
  worker_->settle(ops[2], nullptr, now_);
  worker_->settle(ops[0], nullptr, now_);
}

TEST_F(Queues, HaveNoMorePlacesAfterAReload) {
  replace({pacing(2)});
  std::array<Op, 5> ops;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(hold(ops[static_cast<std::size_t>(i)]), Reason::allowed);
  replace({rule("more", {limit("1000/1s")}), pacing(2)});
  EXPECT_EQ(hold(ops[3]), Reason::queue_full) << "two wait since before";
  worker_->released(ops[1]);
  EXPECT_EQ(hold(ops[4]), Reason::allowed);
  replace({pacing(2), pacing(2, "other")});
  worker_->settle(ops[3], nullptr, now_);
  EXPECT_EQ(hold(ops[3]), Reason::queue_full);
  for (Op& op : ops) worker_->settle(op, nullptr, now_);
}

TEST_F(Queues, OfAnotherNameOrDomainHaveTheirOwnPlaces) {
  rules::Rule elsewhere = pacing(1);
  elsewhere.domain = "elsewhere";
  replace({pacing(1), elsewhere});
  std::array<Op, 4> ops;
  EXPECT_EQ(hold(ops[0]), Reason::allowed);
  EXPECT_EQ(hold(ops[1]), Reason::allowed);
  EXPECT_EQ(ops[1].decision.delay, 1s);
  replace({pacing(1, "renamed"), elsewhere});
  EXPECT_EQ(hold(ops[2], {.domain = "elsewhere"}), Reason::allowed);
  EXPECT_EQ(hold(ops[3], {.domain = "elsewhere"}), Reason::allowed);
  EXPECT_EQ(ops[3].decision.delay, 1s);
  for (Op& op : ops) worker_->settle(op, nullptr, now_);
}

// Finding no place is a refusal by that rule, and costs what its refusals cost.
TEST_F(Queues, BlockThoseWhoFindNoPlace) {
  rules::Rule made = pacing(1);
  made.block = rules::Block{.duration = 10min, .threshold = 2};
  rules::Rule other = rule("other", {limit("1000/1s")}, {per(Kind::ip)});
  other.block = rules::Block{.duration = 1h, .threshold = 1};
  replace({other, made});
  std::array<Op, 5> ops;
  EXPECT_EQ(hold(ops[0]), Reason::allowed);
  EXPECT_EQ(hold(ops[1]), Reason::allowed);
  EXPECT_EQ(hold(ops[2]), Reason::queue_full);
  EXPECT_EQ(ops[2].decision.retry_after, 2s);
  EXPECT_EQ(hold(ops[3]), Reason::queue_full);
  EXPECT_EQ(ops[3].decision.retry_after, 10min) << "whoever comes earlier finds the block";
  EXPECT_EQ(hold(ops[4]), Reason::blocked);
  EXPECT_EQ(ops[4].rule->name, "paced");
  EXPECT_EQ(worker_->counters().blocks, 1U) << "the other rule had no objection";
  for (Op& op : ops) worker_->settle(op, nullptr, now_);
}

// ---- turns ------------------------------------------------------------------------------------

// Whoever leaves from the end of the queue gives its turn to the next one that comes.
TEST_F(Queues, GiveTheLastTurnToTheNext) {
  replace({pacing(100)});
  std::array<Op, 4> ops;
  for (Op& op : ops) EXPECT_EQ(hold(op), Reason::allowed);
  EXPECT_EQ(ops[3].decision.delay, 3s);
  worker_->abandon(ops[3], now_);
  EXPECT_EQ(hold(ops[3]), Reason::allowed);
  EXPECT_EQ(ops[3].decision.delay, 3s);
  worker_->abandon(ops[3], now_);
  worker_->abandon(ops[2], now_);
  EXPECT_EQ(hold(ops[3]), Reason::allowed);
  EXPECT_EQ(ops[3].decision.delay, 2s);
  for (Op& op : ops) worker_->settle(op, nullptr, now_);
}

// Those behind were told when they go on, and two in one turn would be more than the limit allows.
TEST_F(Queues, KeepTheTurnsOfThoseBehindWhoeverLeaves) {
  replace({pacing(100)});
  std::array<Op, 4> ops;
  for (Op& op : ops) EXPECT_EQ(hold(op), Reason::allowed);
  worker_->abandon(ops[1], now_);
  EXPECT_EQ(hold(ops[1]), Reason::allowed);
  EXPECT_EQ(ops[1].decision.delay, 4s) << "behind the last, whose turn is after three seconds";
  for (Op& op : ops) worker_->settle(op, nullptr, now_);
}

// In whichever order they leave: whoever stays has a turn of its own, an interval from the next.
TEST_F(Queues, NeverHaveTwoInOneTurn) {
  replace({pacing(100)});
  std::vector<Nanos> turns;
  std::array<Op, 12> ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ASSERT_EQ(hold(ops[i]), Reason::allowed);
    if (i % 3 == 1) {
      worker_->abandon(ops[i - 1], now_);
    } else if (i % 3 == 2) {
      turns.push_back(ops[i].decision.delay);
      turns.push_back(ops[i - 1].decision.delay);
    }
  }
  std::ranges::sort(turns);
  for (std::size_t i = 1; i < turns.size(); ++i) EXPECT_GE(turns[i] - turns[i - 1], 1s) << i;
  for (Op& op : ops) worker_->settle(op, nullptr, now_);
}

}  // namespace
}  // namespace sluice::engine
