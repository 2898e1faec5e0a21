// Numbers of shared limits, and the shares of nodes.
#include "store/shared/shared_limits.h"

#include "store/shared/node_share.h"
#include "store/shared/scripted_authority_fixture.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;

constexpr std::int64_t kStart = std::int64_t{1'700'000'000} * 1'000'000'000;
constexpr Sharing kExact{.mode = Mode::exact};

Limit window(std::uint64_t amount) {
  return {.algorithm = Algorithm::fixed_window, .amount = amount, .period = 1h};
}

class SharedLimitsTest : public ::testing::Test {
 protected:
  LimitNumber use(const Limit& limit, const Sharing& sharing = kExact) {
    return limits_.use(limit, sharing, now_).value();
  }
  std::uint64_t share_amount(LimitNumber number) const {
    return table_->limit(limits_.find(number)->share).limit().amount;
  }

  Now now_ = at(kStart);
  std::unique_ptr<LocalStore> table_ =
      LocalStore::open({.mapping = {.memory = Mapping::kMemoryMin}}, now_).value();
  SharedLimits limits_{*table_, &compile_for_test, 4};
};

TEST_F(SharedLimitsTest, TellLocalAndSharedNumbersApart) {
  const LimitNumber local = use(window(10), Sharing{});
  const LimitNumber shared = use(window(10));
  EXPECT_FALSE(is_shared(local));
  EXPECT_TRUE(is_shared(shared));
  EXPECT_EQ(limits_.find(local), nullptr);
  EXPECT_EQ(use(window(10)), shared);
  EXPECT_EQ(use(window(10), {.mode = Mode::automatic}), shared) << "one mode today";
  EXPECT_NE(use(window(11)), shared);
  EXPECT_NE(use(window(10), {.mode = Mode::exact, .on_failure = OnFailure::open}), shared);
}

TEST_F(SharedLimitsTest, NameTheModeThatIsMissing) {
  const auto number = limits_.use(window(10), {.mode = Mode::lease}, now_);
  ASSERT_FALSE(number);
  EXPECT_EQ(number.error().text(), "mode lease is not available yet; use exact, or local");
}

TEST_F(SharedLimitsTest, PassErrorsOfTheAuthorityOn) {
  Limit wrong = window(0);
  EXPECT_FALSE(limits_.use(wrong, kExact, now_));
}

// A limit keeps its number while it has users, and for some minutes after. A number that was given
// up is never another limit's.
TEST_F(SharedLimitsTest, NeverGiveANumberTwice) {
  const LimitNumber first = use(window(1));
  for (std::uint64_t i = 1; i < SharedLimits::kLimitsMax; ++i) {
    (void)use(window(1 + i), {.mode = Mode::exact, .on_failure = OnFailure::open});
  }
  EXPECT_FALSE(limits_.use(window(99'999'999), kExact, now_)) << "all are in use";
  limits_.stop_using(first);
  EXPECT_FALSE(limits_.use(window(99'999'999), kExact, now_)) << "a call may still name it";
  EXPECT_NE(limits_.find(first), nullptr);
  now_ = at(kStart + Nanos{SharedLimits::kGrace}.count());
  const LimitNumber next = use(window(99'999'999));
  EXPECT_NE(next, first);
  EXPECT_EQ(next % SharedLimits::kLimitsMax, first % SharedLimits::kLimitsMax) << "its place";
  EXPECT_EQ(limits_.find(first), nullptr);
  limits_.stop_using(first);  // of no effect on the tenant of today
  EXPECT_NE(limits_.find(next), nullptr);
}

TEST_F(SharedLimitsTest, LeaveAQuarterOfTheNumbersToRules) {
  std::uint64_t accepted = 0;
  while (limits_.use_for_request(window(1 + accepted),
                                 {.mode = Mode::exact, .on_failure = OnFailure::open}, now_)) {
    ++accepted;
  }
  EXPECT_EQ(accepted, SharedLimits::kLimitsMax / 4 * 3);
  EXPECT_TRUE(limits_.use(window(99'999'999), kExact, now_));
}

TEST_F(SharedLimitsTest, RevivesALimitThatReturnsInTime) {
  const LimitNumber number = use(window(10));
  limits_.stop_using(number);
  (void)use(window(11));  // starts the grace
  now_ = at(kStart + Nanos{1h}.count());
  EXPECT_EQ(use(window(10)), number);
}

TEST_F(SharedLimitsTest, ChangeSharesWithTheNumberOfNodes) {
  const LimitNumber number = use(window(100));
  EXPECT_EQ(share_amount(number), 25U);
  limits_.set_nodes(3, now_);
  EXPECT_EQ(share_amount(number), 33U);
  limits_.set_nodes(1, now_);
  EXPECT_EQ(share_amount(number), 100U);
  limits_.set_nodes(0, now_);
  EXPECT_EQ(share_amount(number), 100U);
}

// Workers look limits up while others are registered and the number of nodes changes.
TEST_F(SharedLimitsTest, AreFoundWhileOthersComeAndGo) {
  const LimitNumber number = use(window(100));
  std::atomic<bool> stop{false};
  std::thread worker{[&] {
    while (!stop.load()) {
      const SharedTerms* const terms = limits_.find(number);
      ASSERT_NE(terms, nullptr);
      ASSERT_EQ(terms->limit->capacity, 100U);
      ASSERT_NE(table_->limit_if_known(terms->share.load()), nullptr);
    }
  }};
  for (std::uint32_t i = 0; i < 300; ++i) {
    limits_.stop_using(use(window(1000 + i)));
    limits_.set_nodes(1 + i % 7, now_);
  }
  stop = true;
  worker.join();
}

// ---- shares -------------------------------------------------------------------------------------

// All shares together never admit more than the limit, in amounts per time.
TEST(NodeShare, IsNeverMoreThanItsPart) {
  for (const testing::Subject& subject : testing::all_subjects()) {
    for (const std::uint32_t nodes : {2U, 3U, 7U, 64U, 1000U}) {
      const auto share = share_of(subject.limit, nodes);
      if (!share) continue;
      ASSERT_TRUE(core::compile(*share)) << subject.name;
      if (subject.limit.algorithm == Algorithm::concurrency) {
        EXPECT_LE(share->amount * nodes, subject.limit.amount) << subject.name;
        continue;
      }
      if (subject.limit.unit) {
        // Shorter than a unit only by the leap of a day or an hour.
        EXPECT_TRUE(share->unit ? share->amount * nodes <= subject.limit.amount
                                : share->amount == 1)
            << subject.name;
        continue;
      }
      // share->amount / share->period <= amount / period / nodes
      EXPECT_LE(
          Int128{static_cast<std::int64_t>(share->amount)} * subject.limit.period.count() * nodes,
          Int128{static_cast<std::int64_t>(subject.limit.amount)} * share->period.count())
          << subject.name << " of " << nodes;
      if (core::is_bucket(subject.limit.algorithm)) {
        EXPECT_LE(core::capacity(*share),
                  std::max<std::uint64_t>(core::capacity(subject.limit) / nodes, 1));
      }
    }
  }
}

TEST(NodeShare, OfOneNodeIsTheLimit) { EXPECT_EQ(share_of(window(5), 1)->amount, 5U); }

TEST(NodeShare, BelowOneIsOneInSeveralPeriods) {
  const auto share = share_of(window(2), 5);
  EXPECT_EQ(share->amount, 1U);
  EXPECT_EQ(share->period, 3h);
  Limit monthly{.algorithm = Algorithm::fixed_window, .amount = 1};
  monthly.align = Align::calendar;
  monthly.unit = CalendarUnit::month;
  const auto of_months = share_of(monthly, 2);
  EXPECT_EQ(of_months->amount, 1U);
  EXPECT_FALSE(of_months->unit);
  EXPECT_GE(of_months->period, 62 * 24h);
}

// One slot, or one request a year, cannot be divided among nodes: no node has a share of it.
TEST(NodeShare, IsNothingWhereItCannotBeSmallEnough) {
  EXPECT_FALSE(share_of({.algorithm = Algorithm::concurrency, .amount = 3}, 4));
  EXPECT_TRUE(share_of({.algorithm = Algorithm::concurrency, .amount = 4}, 4));
  Limit yearly = window(1);
  yearly.period = 366 * 24h;
  EXPECT_FALSE(share_of(yearly, 2));
}

}  // namespace
}  // namespace sluice::store
