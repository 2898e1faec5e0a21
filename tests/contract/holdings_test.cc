// What becomes of charges: refunded, corrected, renewed, kept, or charged after the fact.
#include "base/random.h"
#include "contract/contract_fixture.h"
#include <sluice/core/compiled_limit.h>

#include <algorithm>
#include <array>

namespace sluice::contract {
namespace {

// Each algorithm with an amount of 100, as it stays while no time passes.
Limit hundred(Algorithm algorithm) {
  Limit limit{.algorithm = algorithm, .amount = 100, .period = 1h};
  if (algorithm == Algorithm::leaky_bucket) limit.burst = 100;
  if (algorithm == Algorithm::concurrency) {
    limit.period = Nanos{0};
    limit.slot_ttl = 1h;
  }
  return limit;
}

class Holdings : public ContractFixture {
 protected:
  // A charge of `check`.
  Holding take(const Check& check) {
    Request request;
    request.of({{check}});
    decide(request);
    EXPECT_TRUE(request.call.admitted);
    return request.holding();
  }
  void refund(const Check& check, Holding& holding) {
    store_->refund(check, holding, now_);
    world_->deliver(now_);
  }
  void correct(const Check& check, Holding& holding, Cost cost) {
    store_->correct(check, holding, cost, now_);
  }
};

// ---- refunds ------------------------------------------------------------------------------------

TEST_P(Holdings, AreRefundedInFull) {
  for (const Algorithm algorithm : kAlgorithms) {
    SCOPED_TRACE(to_string(algorithm));
    const Check one = check(use(hundred(algorithm)), std::string{to_string(algorithm)}, 7);
    Holding before = take(one);
    Holding holding = take(one);
    EXPECT_EQ(used(one), 14U);
    refund(one, holding);
    EXPECT_EQ(used(one), 7U) << "its own, and not the other's";
    refund(one, before);
    EXPECT_EQ(used(one), 0U);
  }
}

// The holder of a void one may ask again: nothing is given back twice.
TEST_P(Holdings, AreVoidOnceTheyHaveExpired) {
  for (const Algorithm algorithm : kAlgorithms) {
    SCOPED_TRACE(to_string(algorithm));
    const Check one = check(use(hundred(algorithm)), std::string{to_string(algorithm)}, 40);
    Holding old = take(one);
    pass(3h);
    Holding younger = take(one);
    refund(one, old);
    EXPECT_EQ(used(one), 40U) << "that is the younger one's";
    refund(one, younger);
    EXPECT_EQ(used(one), 0U);
  }
}

TEST_P(Holdings, OfBucketsGiveBackOnlyWhatHasNotDrained) {
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::gcra}) {
    const Check one = check(use(hundred(algorithm)), std::string{to_string(algorithm)}, 50);
    Holding old = take(one);
    pass(15min);  // half of it
    const Holding younger = take(one);
    EXPECT_EQ(used(one), 75U);
    refund(one, old);
    EXPECT_GE(used(one), 50U) << "nothing of the younger one";
    Holding kept = younger;
    store_->keep(kept);
  }
}

TEST_P(Holdings, ThatAreKeptStayCharged) {
  const Check one = check(use(hundred(Algorithm::fixed_window)), "a", 7);
  Holding holding = take(one);
  store_->keep(holding);
  EXPECT_EQ(used(one), 7U);
  Holding corrected = take(one);
  correct(one, corrected, 9);
  store_->keep(corrected);
  EXPECT_EQ(used(one), 16U);
}

// ---- corrections --------------------------------------------------------------------------------

struct Said {
  std::vector<Cost> corrections;
  Cost in_the_end;
};

TEST_P(Holdings, CostWhatWasSaidLast) {
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::concurrency) continue;
    for (const Said& said :
         {Said{{}, 5}, Said{{2}, 2}, Said{{0}, 0}, Said{{9}, 9}, Said{{2, 2}, 2}, Said{{9, 9}, 9},
          Said{{2, 9}, 9}, Said{{9, 2}, 2}, Said{{9, 7}, 7}, Said{{2, 1}, 1}, Said{{9, 20}, 20},
          Said{{9, 20, 30, 1}, 1}, Said{{0, 6, 0, 6}, 6}, Said{{5}, 5}}) {
      for (const bool at_once : {true, false}) {  // or each result is known before the next
        SCOPED_TRACE(::testing::Message()
                     << to_string(algorithm) << ::testing::PrintToString(said.corrections));
        pass(10h);
        const Check one = check(use(hundred(algorithm)), std::string{to_string(algorithm)}, 5);
        std::array<Holding, 3> others;  // whose charges stay: before, between and after
        others[0] = take(one);
        Holding holding = take(one);
        others[1] = take(one);
        for (const Cost cost : said.corrections) {
          correct(one, holding, cost);
          if (!at_once) world_->deliver(now_);
        }
        others[2] = take(one);
        EXPECT_EQ(used(one), 15U + said.in_the_end);
        refund(one, holding);
        EXPECT_EQ(used(one), 15U) << "nothing of the others";
        for (Holding& other : others) store_->keep(other);
      }
    }
  }
}

TEST_P(Holdings, GiveBackNoMoreThanACorrectionTook) {
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::concurrency) continue;
    SCOPED_TRACE(to_string(algorithm));
    const LimitNumber limit = use(hundred(algorithm));
    const std::string name{to_string(algorithm)};
    Holding other = take(check(limit, name, 60));
    const Check one = check(limit, name, 30);
    Holding holding = take(one);
    correct(one, holding, 90);
    EXPECT_EQ(used(one), 100U) << "as much as there is room for";
    correct(one, holding, 35);
    EXPECT_EQ(used(one), 95U);
    correct(one, holding, 90);
    refund(one, holding);
    EXPECT_EQ(used(one), 60U) << "the other's, all of it";
    refund(check(limit, name, 60), other);
    // A bucket may keep more of what is given back out of turn.
    if (!core::is_bucket(algorithm)) {
      EXPECT_EQ(used(one), 0U);
    }
  }
}

// Any order of calls, corrections and endings, at one time: the sum of what was said last, of those
// that stay. A bucket may keep more of what is given back out of turn, and never less.
TEST_P(Holdings, AgreeWithAPlainSum) {
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::concurrency) continue;
    const bool is_bucket = core::is_bucket(algorithm);
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      SCOPED_TRACE(::testing::Message() << to_string(algorithm) << " seed " << seed);
      Random random{seed};
      pass(10h);
      const LimitNumber limit = use(hundred(algorithm));
      const Check one = check(limit, std::string{to_string(algorithm)}, 2);
      struct Flight {
        Holding holding;
        Cost cost;
      };
      std::vector<Flight> flights;
      std::uint64_t kept = 0;
      const auto known = [&] {
        std::uint64_t sum = kept;
        for (const Flight& flight : flights) sum += flight.cost;
        return sum;
      };
      for (int step = 0; step < 40; ++step) {
        const std::uint64_t dice = random.below(4);
        const std::size_t which = flights.empty() ? 0 : random.below(flights.size());
        if (dice <= 1) {
          const std::uint64_t found = used(one);
          Request request;
          request.of({{one}});
          decide(request);
          ASSERT_EQ(request.call.admitted, found + 2 <= 100);
          if (request.call.admitted) flights.push_back({request.holding(), 2});
        } else if (dice == 2 && !flights.empty()) {
          const std::uint64_t room = 100 - (known() - flights[which].cost);
          flights[which].cost =
              static_cast<Cost>(random.below(std::min<std::uint64_t>(room, 12) + 1));
          correct(one, flights[which].holding, flights[which].cost);
        } else if (dice == 3 && !flights.empty()) {
          if (random.below(2) == 0) {
            kept += flights[which].cost;
            store_->keep(flights[which].holding);
          } else {
            refund(one, flights[which].holding);
          }
          flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(which));
        }
        ASSERT_GE(used(one), known()) << step;
        if (!is_bucket) {
          ASSERT_EQ(used(one), known()) << step;
        }
      }
      for (Flight& flight : flights) store_->keep(flight.holding);
    }
  }
}

// ---- charges ------------------------------------------------------------------------------------

TEST_P(Holdings, AreNotNeededForCharges) {
  for (const Algorithm algorithm : kAlgorithms) {
    SCOPED_TRACE(to_string(algorithm));
    const LimitNumber limit = use(hundred(algorithm));
    const std::string name{to_string(algorithm)};
    store_->charge(check(limit, name, 30), now_);
    EXPECT_EQ(used(check(limit, name)), 30U);
    store_->charge(check(limit, name, 90), now_);
    EXPECT_EQ(used(check(limit, name)), 100U) << "as much as there is room for";
    EXPECT_FALSE(admits(check(limit, name)));
    store_->charge(check(limit, name, 5), now_);
    EXPECT_EQ(used(check(limit, name)), 100U);
  }
}

// ---- slots --------------------------------------------------------------------------------------

class Slots : public Holdings {
 protected:
  [[nodiscard]] Check slots(const std::string& name) {
    Limit limit = hundred(Algorithm::concurrency);
    limit.amount = 2;
    limit.slot_ttl = 1min;
    return check(use(limit), name);
  }
};

TEST_P(Slots, AreFreeAsSoonAsTheyAreReleased) {
  const Check one = slots("a");
  Holding first = take(one);
  Holding second = take(one);
  EXPECT_FALSE(admits(one));
  refund(one, first);
  EXPECT_TRUE(admits(one));
  EXPECT_FALSE(admits(one));
  refund(one, second);
}

// For at least their time, and at most twice that.
TEST_P(Slots, LapseUnlessTheyAreRenewed) {
  const Check one = slots("a");
  Holding renewed = take(one);
  Holding left = take(one);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(used(one), i < 2 ? 2U : used(one));
    pass(30s);
    store_->renew(one, renewed, now_);
  }
  EXPECT_EQ(used(one), 1U) << "the renewed one";
  refund(one, left);
  EXPECT_EQ(used(one), 1U) << "it had lapsed, and takes no other's";
  refund(one, renewed);
  EXPECT_EQ(used(one), 0U);
}

TEST_P(Slots, AreNotRenewedOnceTheyHaveLapsed) {
  const Check one = slots("a");
  Holding lapsed = take(one);
  pass(2min);
  Holding other = take(one);
  store_->renew(one, lapsed, now_);
  EXPECT_EQ(used(one), 1U) << "the other's";
  refund(one, lapsed);
  EXPECT_EQ(used(one), 1U);
  refund(one, other);
}

INSTANTIATE_TEST_SUITE_P(Contract, Holdings, ::testing::ValuesIn(subjects()), subject_name());
INSTANTIATE_TEST_SUITE_P(Contract, Slots, ::testing::ValuesIn(subjects()), subject_name());

}  // namespace
}  // namespace sluice::contract
