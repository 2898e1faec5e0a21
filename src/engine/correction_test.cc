// Costs that are known only when the request is over: what is charged in the end is what it cost,
// whatever was said before, and never a unit of anybody else's.
#include "engine/engine_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <vector>

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kAmount = 100;

class Corrections : public EngineFixture, public ::testing::WithParamInterface<Algorithm> {
 protected:
  void use_one(store::Cost cost, bool counts) {
    rules::Rule made = rule("r", {limit(std::to_string(kAmount) + "/1h", GetParam())});
    made.cost.constant = cost;
    if (counts) made.count = rules::Count{.statuses = {{500, 599}}};
    use({made});
  }
  // How much is counted, by what a peek finds.
  std::uint64_t used() {
    EXPECT_EQ(decide(peek_, {}), store::Completion::now);
    const std::uint64_t left =
        peek_.decision.allowed() ? peek_.decision.remaining + peeked_ : peek_.decision.remaining;
    worker_->abandon(peek_, now_);
    return kAmount - left;
  }
  void settle(Op& op, bool counted) {
    const ResponseView response{.status = static_cast<std::uint16_t>(counted ? 500 : 200)};
    worker_->settle(op, &response, now_);
  }

  Op peek_;
  std::uint64_t peeked_ = 1;
};

struct Said {
  std::vector<store::Cost> corrections;
  store::Cost in_the_end;
};

TEST_P(Corrections, LeaveWhatWasSaidLast) {
  for (const bool counted : {true, false}) {
    for (const Said& said :
         {Said{{}, 5}, Said{{2}, 2}, Said{{0}, 0}, Said{{9}, 9}, Said{{2, 2}, 2}, Said{{9, 9}, 9},
          Said{{2, 9}, 9}, Said{{9, 2}, 2}, Said{{9, 7}, 7}, Said{{2, 1}, 1}, Said{{9, 20}, 20},
          Said{{9, 20, 30, 1}, 1}, Said{{0, 6, 0, 6}, 6}, Said{{5}, 5}}) {
      SCOPED_TRACE(testing::Message()
                   << counted << " " << testing::PrintToString(said.corrections));
      now_ = at(now_.mono - at(Nanos{0}).mono + 10h);
      use_one(5, true);
      peeked_ = 5;
      std::array<Op, 3> others;  // whose charges must stay: before, between and after
      ASSERT_EQ(decide(others[0], {}), store::Completion::now);
      ASSERT_EQ(decide(op_, {}), store::Completion::now);
      ASSERT_EQ(decide(others[1], {}), store::Completion::now);
      for (const store::Cost one : said.corrections) worker_->correct_cost(op_, one, now_);
      ASSERT_EQ(decide(others[2], {}), store::Completion::now);
      EXPECT_EQ(used(), 15U + said.in_the_end);
      settle(op_, counted);
      EXPECT_EQ(used(), 15U + (counted ? said.in_the_end : 0));
      for (Op& other : others) settle(other, true);
      EXPECT_EQ(used(), 15U + (counted ? said.in_the_end : 0));
    }
  }
}

TEST_P(Corrections, HoldForRulesThatCountEverything) {
  use_one(5, false);
  peeked_ = 5;
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  worker_->correct_cost(op_, 8, now_);
  worker_->correct_cost(op_, 3, now_);
  settle(op_, false);
  EXPECT_EQ(used(), 3U);
}

// A charge that found no more room took less, and gives back no more than it took.
TEST_P(Corrections, GiveBackNoMoreThanTheyTook) {
  use_one(60, true);
  peeked_ = 60;
  Op other;
  ASSERT_EQ(decide(other, {}), store::Completion::now);
  use_one(30, true);
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  worker_->correct_cost(op_, 90, now_);
  settle(op_, false);
  use_one(1, true);
  peeked_ = 1;
  EXPECT_EQ(used(), 60U) << "the other's, all of it";
  settle(other, true);
}

// More corrections than there is room for receipts: what nobody can give back stays.
TEST_P(Corrections, AreBoundedInNumber) {
  use_one(1, true);
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  for (store::Cost cost = 2; cost <= 90; ++cost) worker_->correct_cost(op_, cost, now_);
  EXPECT_EQ(used(), 90U);
  worker_->correct_cost(op_, 80, now_);
  EXPECT_EQ(used(), 80U);
  settle(op_, false);
  EXPECT_LE(used(), 90U - 63U);
}

// Any order of requests, corrections and endings, at one time: the sum of what those that count
// cost, and of what those that are under way are known to. A bucket may keep more of what is given
// back out of turn, and never less.
TEST_P(Corrections, AgreeWithAPlainModel) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::minstd_rand random{seed};
    const auto below = [&](std::uint32_t end) {
      return static_cast<std::uint32_t>(random() % end);
    };
    now_ = at(now_.mono - at(Nanos{0}).mono + 10h);
    use_one(2, true);
    peeked_ = 2;
    struct Flight {
      std::unique_ptr<Op> op;
      std::uint32_t cost;
    };
    std::vector<Flight> flights;
    std::uint64_t kept = 0;
    const auto known = [&] {
      std::uint64_t sum = kept;
      for (const Flight& one : flights) sum += one.cost;
      return sum;
    };
    for (int step = 0; step < 40; ++step) {
      const std::uint64_t found = used();
      const std::uint32_t dice = below(4);
      if (dice == 0) {
        Flight one{.op = std::make_unique<Op>(), .cost = 2};
        ASSERT_EQ(decide(*one.op, {}), store::Completion::now);
        const bool admitted = one.op->action == Action::pass;
        ASSERT_EQ(admitted, found + 2 <= kAmount);
        if (!admitted) worker_->settle(*one.op, nullptr, now_);
        if (admitted) flights.push_back(std::move(one));
      } else if (dice == 1 && !flights.empty()) {
        Flight& one = flights[below(static_cast<std::uint32_t>(flights.size()))];
        const auto room = static_cast<std::uint32_t>(kAmount - (known() - one.cost));
        one.cost = below(std::min(room, 12U) + 1);
        worker_->correct_cost(*one.op, one.cost, now_);
      } else if (dice == 2 && !flights.empty()) {
        const std::size_t which = below(static_cast<std::uint32_t>(flights.size()));
        const bool counted = below(2) == 0;
        settle(*flights[which].op, counted);
        if (counted) kept += flights[which].cost;
        flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(which));
      }
      const bool is_bucket = GetParam() == Algorithm::token_bucket || GetParam() == Algorithm::gcra;
      ASSERT_GE(used(), known()) << step;
      if (!is_bucket) {
        ASSERT_EQ(used(), known()) << step;
      }
    }
    for (Flight& one : flights) settle(*one.op, true);
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Corrections,
                         ::testing::Values(Algorithm::fixed_window, Algorithm::token_bucket,
                                           Algorithm::gcra, Algorithm::sliding_log,
                                           Algorithm::sliding_counter, Algorithm::sliding_buckets),
                         [](const auto& one) { return std::string{to_string(one.param)}; });

}  // namespace
}  // namespace sluice::engine
