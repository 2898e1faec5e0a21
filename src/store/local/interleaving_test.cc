// Two threads in every order: insertions of one key, of several, evictions, and deaths.
//
// Each scenario prepares a table of five groups, in which it is known who finds what free, and
// looks at it after every schedule: one slot for a key, every admitted unit of cost either in the
// table or counted as forgiven, the bytes of `passed` exact. A failure prints its schedule.

#include "store/local/interleaving_fixture.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice::store {
namespace {

// Slot 2 is free for the thread whose clock is ahead, slot 5 for both: they place the key into
// different slots, and one request of a limit of one passes.
TEST_F(Interleaving, OneKeyIntoSlotsThatOnlyOneThreadFindsFree) {
  fill(0, 8, 50);
  fill(2, 3, 1);
  fixture_->slots()[5] = {};
  explore(
      {[&] { decide(0, check_of(kKey, kOne)); }, [&] { decide(1, check_of(kKey, kOne), kLater); }},
      [&] {
        EXPECT_EQ(admitted(), 1);
        EXPECT_EQ(used(kKey), 1U);
        EXPECT_EQ(table().counters().forgiven, 0U);
      });
}

// The same with a limit that admits both: neither charge is lost, neither counts twice.
TEST_F(Interleaving, BothChargesOfOneKeyAreKept) {
  fill(0, 8, 50);
  fill(2, 3, 1);
  fixture_->slots()[5] = {};
  explore(
      {[&] { decide(0, check_of(kKey, kTen)); }, [&] { decide(1, check_of(kKey, kTen), kLater); }},
      [&] {
        EXPECT_EQ(admitted(), 2);
        EXPECT_EQ(used(kKey), 2U);
        EXPECT_EQ(table().counters().forgiven, 0U);
      });
}

// The first group is full for the thread whose clock is behind, so the two look for the key's slot
// in different groups: they find each other by `passed`.
TEST_F(Interleaving, OneKeyIntoTwoGroups) {
  fill(0, 8, 50);
  fill(7, 8, 1);
  explore(
      {[&] { decide(0, check_of(kKey, kOne)); }, [&] { decide(1, check_of(kKey, kOne), kLater); }},
      [&] {
        EXPECT_EQ(admitted(), 1);
        EXPECT_EQ(used(kKey), 1U);
        EXPECT_EQ(table().counters().forgiven, 0U);
      });
}

// A key takes the last slot of the group while another is placed: that one goes to the next group,
// and the thread that comes with it a second time has to find it there.
TEST_F(Interleaving, AGroupFillsUpWhileAKeyIsPlaced) {
  fill(0, 7, 50);
  explore({[&] { decide(0, check_of(kKey, kTen)); },
           [&] {
             (void)table().decide(check_of(kOther, kTen), kNow);
             decide(1, check_of(kKey, kTen));
           }},
          [&] {
            EXPECT_EQ(admitted(), 2);
            EXPECT_EQ(used(kKey), 2U);
            EXPECT_EQ(used(kOther), 1U);
            EXPECT_EQ(table().counters().forgiven, 0U);
          });
}

// One slot is left and everybody is in greater debt: one key gets it, the other request is admitted
// untracked and counted.
TEST_F(Interleaving, TwoKeysCompeteForTheLastSlot) {
  fill(0, kSlots, 50);
  fixture_->slots()[3] = {};
  explore({[&] { decide(0, check_of(kKey, kTen)); }, [&] { decide(1, check_of(kOther, kTen)); }},
          [&] {
            EXPECT_EQ(admitted(), 2);
            EXPECT_EQ(used(kKey) + used(kOther), 1U);
            EXPECT_EQ(table().counters().untracked, 1U);
            EXPECT_EQ(table().counters().forgiven, 1U);
          });
}

// One slot is free, one owes little: whoever does not get the free one evicts the other, and what
// that owed is counted, once.
TEST_F(Interleaving, OneInsertsWhileTheOtherEvicts) {
  fill(0, kSlots, 50);
  fill(3, 4, 3);
  fixture_->slots()[5] = {};
  explore({[&] { decide(0, check_of(kKey, kTen)); }, [&] { decide(1, check_of(kOther, kTen)); }},
          [&] {
            EXPECT_EQ(used(kKey), 1U);
            EXPECT_EQ(used(kOther), 1U);
            EXPECT_EQ(table().counters().evicted, 1U);
            EXPECT_EQ(table().counters().forgiven, 3U);
            EXPECT_EQ(table().counters().untracked, 0U);
          });
}

// Both want the one slot that owes little. The second finds a debt equal to its own.
TEST_F(Interleaving, TwoKeysEvictTheSameSlot) {
  fill(0, kSlots, 50);
  fill(3, 4, 3);
  explore({[&] { decide(0, check_of(kKey, kTen)); }, [&] { decide(1, check_of(kOther, kTen)); }},
          [&] {
            EXPECT_EQ(used(kKey) + used(kOther), 1U);
            EXPECT_EQ(table().counters().evicted, 1U);
            EXPECT_EQ(table().counters().untracked, 1U);
            EXPECT_EQ(table().counters().forgiven, 3U + 1U);
          });
}

// A key is forgotten while it is inserted: before, after, or half way, in which case the insertion
// starts over.
TEST_F(Interleaving, AnInsertionMeetsForget) {
  fill(0, 6, 50);
  bool was_there = false;
  explore({[&] { decide(0, check_of(kKey, kTen)); }, [&] { was_there = table().forget(kKey); }},
          [&] {
            EXPECT_TRUE(answers_[0].decision.allowed());
            EXPECT_LE(used(kKey), 1U);
            EXPECT_GE(used(kKey), was_there ? 0U : 1U);
          });
}

TEST_F(Interleaving, AChargeMeetsForget) {
  (void)table().decide(check_of(kKey, kTen, 5), kNow);
  bool was_there = false;
  explore({[&] { decide(0, check_of(kKey, kTen)); }, [&] { was_there = table().forget(kKey); }},
          [&] {
            EXPECT_TRUE(was_there);
            EXPECT_LE(used(kKey), answers_[0].decision.remaining == 9 ? 1U : 0U) << "both stayed";
          });
}

// A charge of a key that is being evicted goes with it or comes too late; either way it is in the
// table or counted.
TEST_F(Interleaving, AChargeMeetsEviction) {
  fill(0, kSlots, 80);
  fixture_->slots()[3] = {};
  (void)table().decide(check_of(kKey, kTen, 3), kNow);
  explore({[&] { decide(0, check_of(kKey, kTen)); }, [&] { decide(1, check_of(kOther, kTen, 7)); }},
          [&] {
            EXPECT_EQ(admitted(), 2);
            EXPECT_EQ(used(kOther), 7U);
            EXPECT_EQ(used(kKey) + used(kOther) + table().counters().forgiven, 3U + 1U + 7U);
          });
}

TEST_F(Interleaving, ARefundMeetsEviction) {
  fill(0, kSlots, 80);
  fixture_->slots()[3] = {};
  const Charge charge = table().decide(check_of(kKey, kTen, 3), kNow).charge;
  explore({[&] { table().refund(check_of(kKey, kTen, 2), charge, kNow); },
           [&] { decide(1, check_of(kOther, kTen, 7)); }},
          [&] {
            EXPECT_EQ(used(kKey), 0U);
            EXPECT_EQ(used(kOther), 7U);
            const std::uint64_t forgiven = table().counters().forgiven;
            EXPECT_TRUE(forgiven == 3 || forgiven == 1) << forgiven;
          });
}

// Two requests, each under a limit of its own and a common one that has room for one of them: what
// the refused one had charged is given back. Every order when all keys are known; up to two
// switches when they have to be inserted.
TEST_F(Interleaving, RequestsUnderSeveralLimitsAreChargedInFullOrNotAtAll) {
  const Digest common = key_of(3);
  std::array<bool, 2> passed{};
  const auto request = [&](std::size_t thread, const Digest& own) {
    const std::array checks{check_of(own, kTen, 3), check_of(common, kTen, 6)};
    std::array<Answer, 2> answers;
    passed[thread] = table().decide_all(checks, kNow, answers);
  };
  const auto expect_with = [&](std::uint64_t before) {
    return [&, before] {
      EXPECT_EQ(passed[0] + passed[1], 1);
      EXPECT_EQ(used(common), before + 6);
      EXPECT_EQ(used(kKey), before + (passed[0] ? 3U : 0U));
      EXPECT_EQ(used(kOther), before + (passed[1] ? 3U : 0U));
    };
  };
  explore({[&] { request(0, kKey); }, [&] { request(1, kOther); }}, expect_with(0), 2);

  reset();
  for (const Digest& key : {kKey, kOther, common}) (void)table().decide(check_of(key, kTen), kNow);
  explore({[&] { request(0, kKey); }, [&] { request(1, kOther); }}, expect_with(1));
}

// One limit refuses at the look, then somebody makes room in it. The request stays refused, and
// what the second look charged by then is given back.
TEST_F(Interleaving, ARequestRefusedBySeveralLimitsMeetsARefund) {
  (void)table().decide(check_of(kOther, kTen, 1), kNow);
  const Charge charge = table().decide(check_of(kKey, kTen, 10), kNow).charge;
  bool passed = false;
  explore({[&] {
             const std::array checks{check_of(kKey, kTen, 2), check_of(kOther, kTen, 3)};
             std::array<Answer, 2> answers;
             passed = table().decide_all(checks, kNow, answers);
           },
           [&] { table().refund(check_of(kKey, kTen, 10), charge, kNow); }},
          [&] {
            EXPECT_EQ(used(kKey), passed ? 2U : 0U);
            EXPECT_EQ(used(kOther), passed ? 4U : 1U);
          });
}

// States in blocks: all orders with up to three switches.
TEST_F(Interleaving, OneKeyWhoseStateNeedsABlock) {
  use_blocks();
  fill(0, 8, 50);
  fill(2, 3, 1);
  fixture_->slots()[5] = {};
  explore(
      {[&] { decide(0, check_of(kKey, kLogOfOne)); },
       [&] { decide(1, check_of(kKey, kLogOfOne), kLater); }},
      [&] {
        EXPECT_EQ(admitted(), 1);
        EXPECT_EQ(used(kKey), 1U);
      },
      3);
}

TEST_F(Interleaving, ChargesAndRefundsInABlock) {
  use_blocks();
  const Charge charge = table().decide(check_of(kKey, kLogOfTen, 4), kNow).charge;
  explore(
      {[&] {
         decide(0, check_of(kKey, kLogOfTen, 2), kLater);
         table().refund(check_of(kKey, kLogOfTen, 4), charge, kLater);
       },
       [&] { decide(1, check_of(kKey, kLogOfTen, 3), kNow); }},
      [&] {
        EXPECT_EQ(admitted(), 2);
        EXPECT_EQ(used(kKey, kLater), 5U);
      },
      3);
}

// A key in a cell finds a slot, and each thread finds one free. Whichever thread confirms the slot,
// it begins with the usage in the cell.
TEST_F(Interleaving, BothMoveAKeyFromItsCellToASlot) {
  use_cells();
  fill(0, kSlots, 50);
  ASSERT_TRUE(table().decide(check_of(kKey, kTen, 9), kNow).decision.allowed());
  ASSERT_EQ(slots_of(kKey).confirmed, 0);
  fixture_->slots()[3] = {};
  fixture_->slots()[5] = {};
  explore({[&] { decide(0, check_of(kKey, kTen)); }, [&] { decide(1, check_of(kKey, kTen)); }},
          [&] {
            EXPECT_EQ(admitted(), 1);
            EXPECT_EQ(slots_of(kKey).confirmed, 1);
            EXPECT_EQ(used(kKey), 10U);
          });
}

// There is no block for the key's state, and both threads move it from its slot to a cell: its
// usage arrives once, and each request is charged once.
TEST_F(Interleaving, BothMoveAKeyToItsCell) {
  use_cells();
  (void)table().decide(check_of(kKey, kTen, 8), kNow);
  explore({[&] { decide(0, check_of(kKey, kLogOfTen)); },
           [&] { decide(1, check_of(kKey, kLogOfTen)); }},
          [&] {
            EXPECT_EQ(admitted(), 2);
            EXPECT_EQ(slots_of(kKey).confirmed, 0);
            EXPECT_EQ(table().counters().approximated, 2U);
            EXPECT_EQ(table().counters().forgiven, 0U);
            EXPECT_EQ(left_in_cell(kKey), 0U);
          });
}

// Three units are left for four requests.
TEST_F(Interleaving, BothUseUpTheCellThatTheyMoveAKeyTo) {
  use_cells();
  (void)table().decide(check_of(kKey, kTen, 7), kNow);
  std::array<int, 2> passed{};
  const auto ask_twice = [&](int thread) {
    int& mine = passed[static_cast<std::size_t>(thread)];
    mine = 0;
    for (int i = 0; i < 2; ++i) {
      decide(thread, check_of(kKey, kLogOfTen));
      mine += answers_[static_cast<std::size_t>(thread)].decision.allowed() ? 1 : 0;
    }
  };
  explore(
      {[&] { ask_twice(0); }, [&] { ask_twice(1); }},
      [&] {
        EXPECT_EQ(passed[0] + passed[1], 3);
        EXPECT_EQ(left_in_cell(kKey), 0U);
      },
      3);
}

// A thread changes the slot while another gives it up: whichever comes first, both charges count.
TEST_F(Interleaving, AChargeInASlotThatIsGivenUp) {
  use_cells();
  (void)table().decide(check_of(kKey, kTen, 5), kNow);
  explore({[&] { decide(0, check_of(kKey, kLogOfTen, 2)); },
           [&] { decide(1, check_of(kKey, kTen, 3)); }},
          [&] {
            EXPECT_EQ(admitted(), 2);
            const std::uint64_t in_slot = used(kKey);
            EXPECT_EQ(in_slot > 0 ? in_slot : 10 - left_in_cell(kKey), 10U);
          });
}

// Between the cell and the slot it may die: then the usage counts twice, and never not at all.
TEST_F(Interleaving, WhoeverDiesWhileMovingAKeyLosesNoUsage) {
  use_cells();
  (void)table().decide(check_of(kKey, kTen, 6), kNow);
  stop_everywhere({[&] { decide(0, check_of(kKey, kLogOfTen, 2)); },
                   [&] { decide(1, check_of(kKey, kLogOfTen, 2)); }},
                  [&] {
                    EXPECT_EQ(slots_of(kKey).confirmed, 0);
                    EXPECT_TRUE(answers_[1].decision.allowed());
                    EXPECT_LE(left_in_cell(kKey), 2U);
                  });
}

// A thread that dies while it inserts delays nobody: the other one is answered, and the key then
// has one slot. What the dead one had confirmed counts; nothing else does.
TEST_F(Interleaving, WhoeverDiesWhileInsertingDelaysNobody) {
  fill(0, 8, 50);
  fill(2, 3, 1);
  fixture_->slots()[5] = {};
  stop_everywhere(
      {[&] { decide(0, check_of(kKey, kOne)); }, [&] { decide(1, check_of(kKey, kOne), kLater); }},
      [&] {
        EXPECT_EQ(slots_of(kKey).confirmed, 1);
        EXPECT_EQ(slots_of(kKey).tentative, 0);
        EXPECT_EQ(used(kKey, kLater), 1U);
      });
}

TEST_F(Interleaving, WhoeverDiesWhileEvictingDelaysNobody) {
  fill(0, kSlots, 50);
  fill(12, 13, 3);
  stop_everywhere(
      {[&] { decide(0, check_of(kKey, kTen)); }, [&] { decide(1, check_of(kKey, kTen)); }}, [&] {
        EXPECT_EQ(slots_of(kKey).confirmed, 1);
        EXPECT_EQ(slots_of(kKey).tentative, 0);
        EXPECT_EQ(table().counters().untracked, 0U);
        EXPECT_EQ(used(kKey), 10 - answers_[1].decision.remaining);
      });
}

TEST_F(Interleaving, WhoeverDiesWithABlockInHandDelaysNobody) {
  use_blocks();
  stop_everywhere({[&] { decide(0, check_of(kKey, kLogOfTen)); },
                   [&] { decide(1, check_of(kKey, kLogOfTen)); }},
                  [&] {
                    EXPECT_EQ(slots_of(kKey).confirmed, 1);
                    EXPECT_EQ(slots_of(kKey).tentative, 0);
                    EXPECT_EQ(used(kKey), 10 - answers_[1].decision.remaining);
                  });
}

}  // namespace
}  // namespace sluice::store
