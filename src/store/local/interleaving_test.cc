// Two threads in every order: insertions of one key, of several, evictions, and deaths.
//
// Each scenario prepares a table of five groups, in which it is known who finds what free, and
// looks at it after every schedule: one slot for a key, every admitted unit of cost either in the
// table or counted as forgiven, the bytes of `passed` exact. A failure prints its schedule.

#include "store/local/interleaving.h"

#include "store/local/table_fixture.h"
#include "store/local/table_impl.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;

using SteppedTable = BasicTable<SteppedAccess>;

constexpr std::size_t kGroups = 5;
constexpr std::size_t kSlots = kGroups * SteppedTable::kSlotsPerGroup;
constexpr std::uint64_t kTentativeBit = std::uint64_t{1} << 24U;  // of a key word, see table.h

enum : LimitNumber { kFiller, kOne, kTen, kLogOfOne, kLogOfTen };

std::vector<Limit> limits() {
  return {{.algorithm = Algorithm::gcra, .amount = 100, .period = 100s},
          {.algorithm = Algorithm::fixed_window, .amount = 1, .period = 1h},
          {.algorithm = Algorithm::fixed_window, .amount = 10, .period = 1h},
          {.algorithm = Algorithm::sliding_log, .amount = 1, .period = 1h},
          {.algorithm = Algorithm::sliding_log, .amount = 10, .period = 1h}};
}

// Fillers are charged at kBegin and drain by one a second.
constexpr std::int64_t kBegin = std::int64_t{3600} * 1'000'000'000 * 1000;
constexpr Now kNow = at(kBegin + 500'000'000);
constexpr Now kLater = at(kBegin + 1'500'000'000);  // fillers of cost 1 have drained

// All keys here begin with the first line of the first group: place i is slot i.
Digest key_of(std::uint64_t fingerprint) { return {.low = fingerprint << 28U, .high = 1}; }
const Digest kKey = key_of(1);
const Digest kOther = key_of(2);

Check check_of(const Digest& key, LimitNumber limit, Cost cost = 1) {
  return {.key = key, .limit = limit, .cost = cost};
}

class Interleaving : public ::testing::Test {
 protected:
  struct Image {
    std::vector<Pair> slots;
    std::vector<std::uint8_t> passed;
    std::vector<std::byte> slabs;
    std::vector<std::uint32_t> slab_sizes;
    std::uint32_t slabs_used = 0;
  };

  void use_blocks() { fixture_ = std::make_unique<Fixture>(limits(), kGroups, 1); }
  SteppedTable& table() { return *fixture_->table; }

  // Slots from `first` on whose keys owe so much of 100.
  void fill(std::size_t first, std::size_t last, Cost cost) {
    const StoredLimit& limit = *fixture_->known.find(kFiller);
    for (std::size_t slot = first; slot < last; ++slot) {
      const std::uint64_t word = limit.step(limit.idle(at(kBegin)), at(kBegin), cost).word;
      fixture_->slots()[slot] = {.key = (1000 + slot) << 28U | kFiller, .state = word};
    }
  }

  void remember() {
    const auto slots = fixture_->slots();
    const std::byte* const slabs = fixture_->slab_bytes.data();
    image_ = {.slots = {slots.begin(), slots.end()},
              .passed = fixture_->passed,
              .slabs = {slabs, slabs + fixture_->slab_bytes.size()},
              .slab_sizes = fixture_->slab_sizes,
              .slabs_used = fixture_->slabs_used};
  }
  void reset() {
    std::copy(image_.slots.begin(), image_.slots.end(), fixture_->slots().begin());
    fixture_->passed = image_.passed;
    std::copy(image_.slabs.begin(), image_.slabs.end(), fixture_->slab_bytes.data());
    fixture_->slab_sizes = image_.slab_sizes;
    fixture_->slabs_used = image_.slabs_used;
    fixture_->restart();
  }

  Interleaver::Watched watched() {
    return {.slots = fixture_->slots().data(), .passed = fixture_->passed};
  }

  struct Slots {
    int confirmed = 0;
    int tentative = 0;
  };
  Slots slots_of(const Digest& key) {
    Slots found;
    for (const Pair& pair : fixture_->slots()) {
      if (pair.key >> 28U != SteppedTable::fingerprint_of(key)) continue;
      ++((pair.key & kTentativeBit) != 0 ? found.tentative : found.confirmed);
    }
    return found;
  }

  std::uint64_t used(const Digest& key, Now now = kNow) {
    const auto entry = table().read(key, now);
    return entry ? entry->decision.limit - entry->decision.remaining : 0;
  }

  // What holds after every schedule: no double, nothing left half done, `passed` as a recount finds
  // it. While a thread is stopped, `passed` may be too high.
  void expect_sound(bool all_ended = true) {
    for (const Digest& key : {kKey, kOther}) {
      const Slots slots = slots_of(key);
      EXPECT_LE(slots.confirmed, 1) << "slots of key " << key.low;
      if (all_ended) {
        EXPECT_EQ(slots.tentative, 0) << "key " << key.low;
      }
    }
    std::copy(fixture_->slots().begin(), fixture_->slots().end(), mirror_.slots().begin());
    mirror_.table->recount_passed();
    for (std::size_t group = 0; group < kGroups; ++group) {
      EXPECT_GE(fixture_->passed[group], mirror_.passed[group]) << "passed of group " << group;
      if (all_ended) {
        EXPECT_EQ(fixture_->passed[group], mirror_.passed[group]) << "passed of group " << group;
      }
    }
  }

  // Every schedule of two bodies from the table as it is now; `expect` states what this scenario
  // adds to expect_sound.
  void explore(const Interleaver::Bodies& bodies, const std::function<void()>& expect,
               std::optional<int> switches = std::nullopt) {
    remember();
    const std::size_t schedules =
        interleaver_.explore({.watched = watched(),
                              .reset = [this] { reset(); },
                              .bodies = bodies,
                              .check =
                                  [&] {
                                    expect_sound();
                                    expect();
                                    if (!HasFailure()) return true;
                                    ADD_FAILURE() << "schedule: " << interleaver_.schedule();
                                    return false;
                                  },
                              .switches = switches});
    std::cout << schedules << " schedules\n";
    EXPECT_GT(schedules, 5U) << "nothing was interleaved";
  }

  // The first body stops for ever after each number of its steps; the other one gets its answer.
  void stop_everywhere(const Interleaver::Bodies& bodies, const std::function<void()>& expect) {
    remember();
    std::size_t steps = 1;
    for (std::size_t stop = 0; stop <= steps; ++stop) {
      reset();
      interleaver_.run_stopping(watched(), bodies, stop, [&] {
        expect_sound(false);
        expect();
      });
      steps = interleaver_.steps_of(0);
      expect_sound();
      if (HasFailure()) {
        ADD_FAILURE() << "stopped after " << stop << ": " << interleaver_.schedule();
        return;
      }
    }
    std::cout << steps << " places to stop at\n";
  }

  void decide(int thread, const Check& check, Now now = kNow) {
    answers_[static_cast<std::size_t>(thread)] = table().decide(check, now);
  }
  [[nodiscard]] int admitted() const {
    return static_cast<int>(std::count_if(answers_.begin(), answers_.end(),
                                          [](const Answer& a) { return a.decision.allowed(); }));
  }

  using Fixture = TableFixture<SteppedAccess>;
  std::unique_ptr<Fixture> fixture_ = std::make_unique<Fixture>(limits(), kGroups, 0);
  Fixture mirror_{limits(), kGroups, 0};
  Image image_;
  std::array<Answer, 2> answers_;
  Interleaver interleaver_;
};

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
