// Refunds, corrections and renewals, while replies are on their way.
#include "store/shared/shared_store_fixture.h"

#include <gtest/gtest.h>

namespace sluice::store {
namespace {

using Kind = ScriptedAuthority::Asked::Kind;

class SharedHoldingsTest : public SharedStoreTest {
 protected:
  // What a request of this cost holds of a shared limit.
  Holding held_by(const Check& check, std::int64_t mark) const {
    const Charge charge{
        .limit = check.limit, .receipt = {.mark = mark, .cost = check.cost}, .edition = 1};
    return holding(charge, check.cost);
  }
  const ScriptedAuthority::Asked& only() const { return authority_.numbered.at(0); }

  Check check_ = check(shared(window(100)), 1, 5);
  Holding held_ = held_by(check_, 11);
};

TEST_F(SharedHoldingsTest, RefundsAtOnce) {
  store_->refund(check_, held_, now_);
  ASSERT_EQ(authority_.numbered.size(), 1U);
  EXPECT_EQ(only().kind, Kind::refund);
  EXPECT_EQ(only().refunds[0].charge.receipt.mark, 11);
  EXPECT_EQ(only().costs, std::vector<Cost>{5});
  EXPECT_EQ(held_.cost, 0U);
}

TEST_F(SharedHoldingsTest, GivesAPartBackWithoutAReply) {
  store_->correct(check_, held_, 2, now_);
  EXPECT_EQ(only().costs, std::vector<Cost>{3});
  EXPECT_EQ(held_.ticket, 0U);
  EXPECT_EQ(held_.cost, 2U);
  store_->refund(check_, held_, now_);
  EXPECT_EQ(authority_.numbered.at(1).costs, std::vector<Cost>{2}) << "no more than is left";
}

TEST_F(SharedHoldingsTest, ChargesMoreAndRefundsBothParts) {
  store_->correct(check_, held_, 9, now_);
  EXPECT_EQ(only().kind, Kind::charge);
  EXPECT_EQ(only().costs, std::vector<Cost>{4});
  EXPECT_NE(held_.ticket, 0U);
  authority_.charged(0, 4, 12);
  advance();
  store_->refund(check_, held_, now_);
  ASSERT_EQ(authority_.numbered.size(), 1U);
  EXPECT_EQ(only().costs, (std::vector<Cost>{5, 4}));
  EXPECT_EQ(only().refunds[1].charge.receipt.mark, 12);
  EXPECT_EQ(store_->holdings_in_use(), 0U);
}

// Charges in the same window are one, so that there is always room for another.
TEST_F(SharedHoldingsTest, JoinsChargesOfOnePlace) {
  for (const Cost cost : {6U, 7U, 8U}) {
    store_->correct(check_, held_, cost, now_);
    authority_.charged(0, 1, 11);
    advance();
  }
  store_->refund(check_, held_, now_);
  EXPECT_EQ(only().costs, std::vector<Cost>{8});
  EXPECT_EQ(store_->counts().charges_unrefundable, 0U);
}

// Charges of a bucket, with others of other requests between them: two fit into a holding, two more
// into the record, and the next one cannot be refunded.
TEST_F(SharedHoldingsTest, RefundsAFewChargesOfDifferentPlaces) {
  for (const Cost cost : {6U, 8U, 11U, 15U}) {
    store_->correct(check_, held_, cost, now_);
    const Cost added = only().costs[0];
    authority_.charged(0, added, 20 + cost);
    advance();
  }
  EXPECT_EQ(store_->counts().charges_unrefundable, 1U);
  store_->correct(check_, held_, 12, now_);
  EXPECT_EQ(only().costs, std::vector<Cost>{3}) << "of the oldest";
  authority_.numbered.clear();
  store_->refund(check_, held_, now_);
  EXPECT_EQ(only().costs, (std::vector<Cost>{2, 1, 2, 3}));
  EXPECT_EQ(store_->holdings_in_use(), 0U);
}

// Corrections name the whole cost: of those that came while one was on its way, the last counts.
TEST_F(SharedHoldingsTest, CoalescesCorrections) {
  store_->correct(check_, held_, 9, now_);
  store_->correct(check_, held_, 50, now_);
  store_->correct(check_, held_, 7, now_);
  EXPECT_EQ(authority_.numbered.size(), 1U);
  authority_.charged(0, 4, 12);
  advance();
  ASSERT_EQ(authority_.numbered.size(), 1U);
  EXPECT_EQ(only().kind, Kind::refund);
  EXPECT_EQ(only().costs, std::vector<Cost>{2});
  authority_.numbered.clear();

  store_->correct(check_, held_, 10, now_);
  store_->correct(check_, held_, 20, now_);
  authority_.charged(0, 3, 13);
  advance();
  EXPECT_EQ(only().costs, std::vector<Cost>{10}) << "20 in all, 10 are charged";
}

TEST_F(SharedHoldingsTest, RefundsAfterTheReply) {
  store_->correct(check_, held_, 9, now_);
  store_->refund(check_, held_, now_);
  EXPECT_EQ(authority_.numbered.size(), 1U) << "it waits";
  authority_.charged(0, 3, 12);  // as much of it as there was room for
  advance();
  EXPECT_EQ(only().costs, (std::vector<Cost>{5, 3}));
  EXPECT_EQ(store_->holdings_in_use(), 0U);
}

TEST_F(SharedHoldingsTest, KeepsAfterTheReply) {
  store_->correct(check_, held_, 9, now_);
  store_->correct(check_, held_, 12, now_);
  store_->keep(held_);
  authority_.charged(0, 4, 12);
  advance();
  EXPECT_EQ(only().costs, std::vector<Cost>{3}) << "the last correction is made nevertheless";
  authority_.charged(0, 3, 13);
  advance();
  EXPECT_TRUE(authority_.numbered.empty());
  EXPECT_EQ(store_->holdings_in_use(), 0U);
}

TEST_F(SharedHoldingsTest, KeepsWithAReply) {
  store_->correct(check_, held_, 9, now_);
  authority_.charged(0, 4, 12);
  advance();
  store_->keep(held_);
  EXPECT_EQ(store_->holdings_in_use(), 0U);
}

// The charge was made, but its reply was lost, and with it the place to which a refund goes.
TEST_F(SharedHoldingsTest, CountsChargesWhoseReplyWasLost) {
  store_->correct(check_, held_, 9, now_);
  authority_.numbered_is(0, AuthorityOutcome::applied_before);
  advance();
  store_->correct(check_, held_, 8, now_);
  EXPECT_EQ(only().costs, std::vector<Cost>{1}) << "9 are charged";
  store_->refund(check_, held_, now_);
  EXPECT_EQ(authority_.numbered.at(1).costs, std::vector<Cost>{4});
  EXPECT_EQ(store_->counts().charges_unrefundable, 1U);
  EXPECT_EQ(store_->shared_counts().marks_lost, 1U);
}

TEST_F(SharedHoldingsTest, ChargesForGoodWithoutARecord) {
  options_.holdings_max = 1;
  store_ = std::make_unique<SharedStore>(*table_, limits_, authority_, options_);
  Holding other = held_by(check_, 12);
  store_->correct(check_, held_, 6, now_);
  store_->correct(check_, other, 8, now_);
  EXPECT_EQ(other.ticket, 0U);
  EXPECT_EQ(other.cost, 8U);
  EXPECT_EQ(authority_.numbered.at(1).costs, std::vector<Cost>{3});
  EXPECT_EQ(authority_.numbered.at(1).ticket, 0U);
  EXPECT_EQ(store_->shared_counts().holdings_full, 1U);
  EXPECT_EQ(store_->counts().charges_unrefundable, 1U);
}

// ---- slots --------------------------------------------------------------------------------------

class SharedSlotsTest : public SharedHoldingsTest {
 protected:
  SharedSlotsTest() {
    check_ =
        check(shared({.algorithm = Algorithm::concurrency, .amount = 10, .slot_ttl = 60s}), 1, 1);
    held_ = held_by(check_, 1);
  }
};

TEST_F(SharedSlotsTest, MoveWithTheirRenewal) {
  for (std::int64_t mark = 2; mark < 5; ++mark) {
    store_->renew(check_, held_, now_);
    ASSERT_EQ(only().kind, Kind::renew);
    EXPECT_EQ(only().refunds[0].charge.receipt.mark, mark - 1);
    authority_.charged(0, 1, mark);
    advance();
  }
  EXPECT_EQ(store_->holdings_in_use(), 1U);
  store_->refund(check_, held_, now_);
  EXPECT_EQ(only().refunds[0].charge.receipt.mark, 4);
}

TEST_F(SharedSlotsTest, AreReleasedWhereTheRenewalPutThem) {
  store_->renew(check_, held_, now_);
  store_->renew(check_, held_, now_);
  EXPECT_EQ(authority_.numbered.size(), 1U) << "one at a time";
  store_->refund(check_, held_, now_);
  authority_.charged(0, 1, 2);
  advance();
  EXPECT_EQ(only().kind, Kind::refund);
  EXPECT_EQ(only().refunds[0].charge.receipt.mark, 2);
}

TEST_F(SharedSlotsTest, ThatLapsedAreNotReleased) {
  store_->renew(check_, held_, now_);
  authority_.charged(0, 0, 0);
  advance();
  store_->renew(check_, held_, now_);
  store_->refund(check_, held_, now_);
  EXPECT_TRUE(authority_.numbered.empty());
}

// Where a slot has gone is unknown after a lost reply. It lapses, and a new one takes its place:
// the request is counted all the time.
TEST_F(SharedSlotsTest, AreTakenAnewAfterALostReply) {
  store_->renew(check_, held_, now_);
  authority_.numbered_is(0, AuthorityOutcome::applied_before);
  advance();
  store_->renew(check_, held_, now_);
  ASSERT_EQ(only().kind, Kind::charge);
  EXPECT_EQ(only().costs, std::vector<Cost>{1});
  authority_.charged(0, 1, 5);
  advance();
  store_->refund(check_, held_, now_);
  EXPECT_EQ(only().refunds[0].charge.receipt.mark, 5);
}

}  // namespace
}  // namespace sluice::store
