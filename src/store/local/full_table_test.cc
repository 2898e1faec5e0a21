// A table without room: what becomes of keys that come then, by `on_table_full`.

#include "store/local/state_file_test.h"
#include "store/local/table_fixture.h"
#include "store/local/table_impl.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;

using Fixture = TableFixture<DirectAccess>;

constexpr std::int64_t kHour = std::int64_t{3600} * 1'000'000'000;
constexpr std::int64_t kBegin = 1000 * kHour;
constexpr Now kNow = at(kBegin);

enum : LimitNumber { kTwo, kTen, kInFlight, kLog, kQueue };

std::vector<Limit> full_limits() {
  return {{.algorithm = Algorithm::fixed_window, .amount = 2, .period = 1h},
          {.algorithm = Algorithm::gcra, .amount = 10, .period = 1h},
          {.algorithm = Algorithm::concurrency, .amount = 4, .slot_ttl = 60s},
          {.algorithm = Algorithm::sliding_log, .amount = 10, .period = 1h},
          {.algorithm = Algorithm::leaky_bucket, .amount = 1, .period = 1s, .max_delay = 10s}};
}

// Every slot has a key that has used all of its limit.
class FullTable : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint64_t key = 0; key < 2000; ++key) {
      (void)table().decide({.key = numbered_key(key),
                            .limit = kTwo,
                            .cost = 2,
                            .on_table_full = OnTableFull::reject},
                           kNow);
    }
    before_ = table().counters();
  }
  Table& table() { return *fixture_.table; }
  void free_all_slots() {
    const Now later = at(kBegin + kHour);
    (void)table().sweep(0, table().slots(), later, [](LimitNumber) { return false; });
  }

  int admitted_of(int requests, const Check& check, Now now = kNow) {
    int admitted = 0;
    for (int i = 0; i < requests; ++i) {
      admitted += table().decide(check, now).decision.allowed() ? 1 : 0;
    }
    return admitted;
  }

  Fixture fixture_{full_limits(), 53, 0, 64};
  TableCounters before_;
};

TEST_F(FullTable, CountsNewcomersApproximately) {
  EXPECT_EQ(admitted_of(40, {.key = numbered_key(5000), .limit = kTwo}), 2);
  EXPECT_EQ(admitted_of(40, {.key = numbered_key(5001), .limit = kTen}), 10);
  const TableCounters after = table().counters();
  EXPECT_EQ(after.approximated, before_.approximated + 80);
  EXPECT_EQ(after.untracked, 0U);
  EXPECT_EQ(after.forgiven, 0U);
  EXPECT_EQ(after.rejected_for_room, before_.rejected_for_room);
  EXPECT_EQ(table().last_full(), kNow.mono);
  EXPECT_GT(table().sweep_cells(kNow), 0U);
}

TEST_F(FullTable, AllowsNewcomersUntracked) {
  const Check check{.key = numbered_key(5000), .limit = kTwo, .on_table_full = OnTableFull::allow};
  EXPECT_EQ(admitted_of(40, check), 40);
  EXPECT_EQ(table().counters().untracked, 40U);
  EXPECT_EQ(table().counters().forgiven, 40U);
  EXPECT_EQ(table().counters().approximated, before_.approximated);
}

TEST_F(FullTable, RejectsNewcomers) {
  const Check check{.key = numbered_key(5000), .limit = kTwo, .on_table_full = OnTableFull::reject};
  EXPECT_EQ(admitted_of(40, check), 0);
  EXPECT_EQ(table().counters().rejected_for_room, before_.rejected_for_room + 40);
  EXPECT_EQ(table().counters().approximated, before_.approximated);
}

// A request in flight ends when it is released, which a shared cell cannot know.
TEST_F(FullTable, RejectsNewcomersOfConcurrencyThatCannotBeApproximated) {
  EXPECT_EQ(admitted_of(40, {.key = numbered_key(5000), .limit = kInFlight}), 0);
  EXPECT_EQ(table().counters().rejected_for_room, before_.rejected_for_room + 40);
}

// What the cells say is what a peek and a look say, and waiting as told helps.
TEST_F(FullTable, TellsNewcomersTheTruth) {
  const Check check{.key = numbered_key(5000), .limit = kTen};
  EXPECT_EQ(admitted_of(7, check), 7);
  const auto peek = [&](Now now) {
    return table().decide({.key = check.key, .limit = kTen, .cost = 0}, now).decision;
  };
  EXPECT_EQ(peek(kNow).remaining, 3U);
  EXPECT_EQ(admitted_of(4, check), 3);
  const Decision refused = table().decide(check, kNow).decision;
  ASSERT_TRUE(refused.retry_after);
  EXPECT_EQ(*refused.retry_after, Nanos{1h} / 10);
  EXPECT_FALSE(table().decide(check, at(kBegin + kHour / 10 - 1)).decision.allowed());
  EXPECT_TRUE(table().decide(check, at(kBegin + kHour / 10)).decision.allowed());
}

// A cost that never fits is told so, and consumes nothing.
TEST_F(FullTable, KeepsNeverApart) {
  const Check check{.key = numbered_key(5000), .limit = kTen, .cost = 11};
  EXPECT_EQ(table().decide(check, kNow).decision.verdict, Verdict::never);
  EXPECT_EQ(admitted_of(3, {.key = check.key, .limit = kTen}), 3);
  EXPECT_EQ(table().decide(check, kNow).decision.verdict, Verdict::never);
}

TEST_F(FullTable, RefundsAndForgetsWhatItApproximated) {
  const Check check{.key = numbered_key(5000), .limit = kTen, .cost = 4};
  const auto left = [&] {
    return table().decide({.key = check.key, .limit = kTen, .cost = 0}, kNow).decision.remaining;
  };
  const Answer first = table().decide(check, kNow);
  const Answer second = table().decide(check, kNow);
  table().refund(check, first.charge, kNow);  // not the newest
  EXPECT_EQ(left(), 6U);
  table().refund(check, second.charge, kNow);
  EXPECT_EQ(left(), 10U);
  (void)table().force({.key = check.key, .limit = kTen, .cost = 100}, kNow);
  EXPECT_EQ(left(), 0U);
  (void)table().forget(check.key);
  EXPECT_EQ(left(), 10U);
}

// Requests that overlap: a refund gives back its charge less what drains while it is in flight, and
// what it may have kept is counted. So is a charge that has moved to a slot.
TEST_F(FullTable, CountsWhatRefundsLose) {
  const Check check{.key = numbered_key(5000), .limit = kTen};
  const Now later = at(kBegin + kHour / 20);  // half of a unit has drained
  const Answer first = table().decide(check, kNow);
  const Answer second = table().decide(check, kNow);
  table().refund(check, first.charge, later);
  EXPECT_EQ(table().counters().refunds_lost, 0U) << "the half that had drained is not lost";
  table().refund(check, second.charge, later);
  EXPECT_EQ(table().counters().refunds_lost, 1U) << "of the second one nothing had drained";

  const Check moving{.key = numbered_key(5002), .limit = kTen, .cost = 3};
  const Answer before = table().decide(moving, kNow);
  free_all_slots();
  ASSERT_TRUE(table().decide(moving, kNow).decision.allowed());
  ASSERT_TRUE(table().read(moving.key, kNow).has_value());
  table().refund(moving, before.charge, kNow);
  EXPECT_EQ(table().counters().refunds_lost, 4U);
}

// A bucket needs a block to remember a refund, and there is none.
TEST(TableWithoutBlocks, CountsRefundsThatItLoses) {
  Fixture fixture{full_limits(), 5, 0};
  const Check check{.key = numbered_key(1), .limit = kTen, .cost = 3};
  const Answer charged = fixture.table->decide(check, kNow);
  (void)fixture.table->decide(check, kNow);
  fixture.table->refund(check, charged.charge, kNow);
  EXPECT_EQ(fixture.table->counters().refunds_lost, 3U);
}

// Several limits, none with a slot: the one that rejects leaves the others uncharged.
TEST_F(FullTable, ChargesAllLimitsOfARequestOrNone) {
  const std::array checks{Check{.key = numbered_key(5000), .limit = kTen},
                          Check{.key = numbered_key(5001), .limit = kTwo}};
  const auto left = [&] {
    return table()
        .decide({.key = checks[0].key, .limit = kTen, .cost = 0}, kNow)
        .decision.remaining;
  };
  std::array<Answer, 2> answers;
  EXPECT_TRUE(table().decide_all(checks, kNow, answers));
  EXPECT_TRUE(table().decide_all(checks, kNow, answers));
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(table().decide_all(checks, kNow, answers));
    EXPECT_EQ(answers[1].decision.verdict, Verdict::rejected);
  }
  EXPECT_EQ(left(), 8U);

  // One that only finds out when it is charged.
  const std::array strict{
      checks[0],
      Check{.key = numbered_key(5002), .limit = kTwo, .on_table_full = OnTableFull::reject}};
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(table().decide_all(strict, kNow, answers));
  EXPECT_EQ(left(), 8U);
}

// In a cell of its own or in a shared one: a rejected request takes what is left.
TEST(FullTableThatCountsRejected, CountsThemInCells) {
  Fixture fixture{
      {{.algorithm = Algorithm::gcra, .amount = 2, .period = 24h},
       {.algorithm = Algorithm::gcra, .amount = 10, .period = 1h, .count_rejected = true}},
      5,
      0,
      1};
  const auto left_after_a_rejection = [&](std::uint64_t key) {
    const Check check{.key = numbered_key(key), .limit = 1, .cost = 6};
    EXPECT_TRUE(fixture.table->decide(check, kNow).decision.allowed());
    EXPECT_FALSE(fixture.table->decide(check, kNow).decision.allowed());
    return fixture.table->decide({.key = check.key, .limit = 1, .cost = 0}, kNow)
        .decision.remaining;
  };
  for (std::uint64_t key = 0; key < 400; ++key) {  // slots only
    (void)fixture.table->decide(
        {.key = numbered_key(key), .limit = 0, .cost = 2, .on_table_full = OnTableFull::reject},
        kNow);
  }
  EXPECT_EQ(left_after_a_rejection(1000), 0U);
  for (std::uint64_t key = 2000; key < 2400; ++key) {  // the cells, too
    (void)fixture.table->decide({.key = numbered_key(key), .limit = 0, .cost = 2}, kNow);
  }
  EXPECT_EQ(left_after_a_rejection(1001), 0U);
}

// Slots that drain go to newcomers, which begin with what they used before.
TEST_F(FullTable, GivesASlotWithWhatWasUsedWithoutOne) {
  const Check check{.key = numbered_key(5000), .limit = kTen, .cost = 8};
  ASSERT_TRUE(table().decide(check, kNow).decision.allowed());
  EXPECT_FALSE(table().read(check.key, kNow).has_value());
  // The windows of the others are over; of eight tenths of an hour nearly all is left.
  const Now sooner = at(kBegin + kHour / 10);
  free_all_slots();
  const Check one{.key = check.key, .limit = kTen};
  ASSERT_TRUE(table().decide(one, sooner).decision.allowed());
  const auto entry = table().read(check.key, sooner);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->decision.remaining, 2U);
}

// A flood has filled all slots and all cells, and then slots are free again. What the flood used in
// the cells says nothing about keys that come now: each gets its whole limit. One key in a hundred
// may have the tag of a key of the flood.
TEST_F(FullTable, JudgesANewcomerThatFindsASlotByItsOwnUsage) {
  for (std::uint64_t key = 10'000; key < 30'000; ++key) {
    (void)table().decide({.key = numbered_key(key), .limit = kTen, .cost = 5}, kNow);
  }
  ASSERT_FALSE(table().decide({.key = numbered_key(5000), .limit = kTen}, kNow).decision.allowed());
  free_all_slots();
  int whole = 0;
  for (std::uint64_t key = 50'000; key < 50'100; ++key) {
    const Check check{.key = numbered_key(key), .limit = kTen};
    const Decision peeked =
        table().decide({.key = check.key, .limit = kTen, .cost = 0}, kNow).decision;
    std::array<Answer, 1> answers;
    const bool all = table().decide_all(std::array{check}, kNow, answers);
    whole += peeked.remaining == 10 && all && admitted_of(10, check) == 9 ? 1 : 0;
  }
  EXPECT_GE(whole, 98);
}

// A queue in a cell, and then there are slots: as long as requests wait in it, the next ones queue
// behind them. None is released earlier than one second after the one before.
TEST_F(FullTable, LeavesAQueueInItsCell) {
  const Check check{.key = numbered_key(5000), .limit = kQueue};
  const auto expect_delay = [&](Nanos delay, Now now = kNow) {
    const Decision decision = table().decide(check, now).decision;
    ASSERT_TRUE(decision.allowed());
    EXPECT_EQ(decision.delay, delay);
  };
  for (const Nanos delay : {0s, 1s, 2s, 3s}) expect_delay(delay);
  free_all_slots();
  std::array<Answer, 1> answers;
  EXPECT_TRUE(table().decide_all(std::array{check}, kNow, answers));
  EXPECT_EQ(answers[0].decision.delay, Nanos{4s});
  for (const Nanos delay : {5s, 6s, 7s, 8s, 9s, 10s}) expect_delay(delay);
  EXPECT_FALSE(table().decide(check, kNow).decision.allowed());
  EXPECT_FALSE(table().read(check.key, kNow).has_value());
  EXPECT_EQ(table().decide({.key = check.key, .limit = kQueue, .cost = 2}, kNow).decision.verdict,
            Verdict::never);

  // The last one is released: the key gets a slot, with the usage of that one.
  const Now released = at(kBegin + 10'000'000'000);
  expect_delay(1s, released);
  EXPECT_TRUE(table().read(check.key, released).has_value());
}

// A key whose neighbours used the shared cell must not push out keys that used something
// themselves.
TEST_F(FullTable, LetsNoKeyEvictByWhatOthersUsed) {
  Fixture fixture{{{.algorithm = Algorithm::gcra, .amount = 100, .period = 1h}}, 5, 0, 1};
  for (std::uint64_t key = 0; key < 400; ++key) {
    (void)fixture.table->decide({.key = numbered_key(key), .limit = 0, .cost = 2}, kNow);
  }
  const std::uint64_t evicted = fixture.table->counters().evicted;
  for (std::uint64_t key = 1000; key < 1400; ++key) {
    (void)fixture.table->decide({.key = numbered_key(key), .limit = 0}, kNow);
  }
  // One in two hundred has the tag of another key by accident.
  EXPECT_LE(fixture.table->counters().evicted, evicted + 10);
}

// ---- a heavy newcomer, over time --------------------------------------------------------------

struct Admission {
  std::int64_t at = 0;
  Cost cost = 0;
};

// Admitted in any period, ever.
class Windows {
 public:
  explicit Windows(Nanos period) : period_(period.count()) {}
  void add(std::int64_t now, Cost cost) {
    while (!admissions_.empty() && admissions_.front().at <= now - period_) {
      sum_ -= admissions_.front().cost;
      admissions_.pop_front();
    }
    admissions_.push_back({now, cost});
    sum_ += cost;
    most_ = std::max(most_, sum_);
  }
  [[nodiscard]] std::uint64_t most() const { return most_; }

 private:
  std::int64_t period_;
  std::deque<Admission> admissions_;
  std::uint64_t sum_ = 0;
  std::uint64_t most_ = 0;
};

std::vector<Limit> heavy_limits() {
  return {{.algorithm = Algorithm::gcra, .amount = 5, .period = 10s},
          {.algorithm = Algorithm::token_bucket, .amount = 6, .period = 10s, .burst = 3},
          {.algorithm = Algorithm::token_bucket,
           .amount = 4,
           .period = 5s,
           .burst = 8,
           .refill = Refill::interval},
          {.algorithm = Algorithm::token_bucket,
           .amount = 50,
           .period = 10s,
           .burst = 2,
           .refill = Refill::interval},
          {.algorithm = Algorithm::fixed_window, .amount = 5, .period = 10s},
          {.algorithm = Algorithm::fixed_window,
           .amount = 3,
           .period = 10s,
           .align = Align::first_request},
          {.algorithm = Algorithm::sliding_log, .amount = 5, .period = 10s},
          {.algorithm = Algorithm::sliding_counter, .amount = 5, .period = 10s},
          {.algorithm = Algorithm::sliding_buckets, .amount = 5, .period = 10s},
          {.algorithm = Algorithm::sliding_log, .amount = 1, .period = 1s}};
}

// A small table in which slots come and go, so that keys move between cells and slots all the time:
// no key is ever admitted more than twice what its limit admits.
TEST(HeavyNewcomer, IsAdmittedAtMostTwiceItsLimitInAnyPeriod) {
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::minstd_rand random{seed};
  const std::vector<Limit> limits = heavy_limits();
  Fixture fixture{limits, 5, 2, 4};
  std::vector<Windows> windows;
  for (const Limit& limit : limits) windows.emplace_back(limit.period);
  std::int64_t now = kBegin;
  std::uint64_t flood = 1'000'000;
  for (int i = 0; i < 60'000; ++i) {
    now += static_cast<std::int64_t>(random() % 30'000'000);
    // Two minutes of flood, one without: the table fills and empties.
    const bool flooded = (now - kBegin) / 60'000'000'000 % 3 != 2;
    const auto limit = static_cast<LimitNumber>(random() % limits.size());
    const std::uint64_t key = random() % 2 == 0 && flooded ? ++flood : limit;
    const Check check{.key = numbered_key(key), .limit = limit};
    const bool admitted = fixture.table->decide(check, at(now)).decision.allowed();
    if (admitted && key == limit) windows[limit].add(now, 1);
  }
  for (std::size_t i = 0; i < limits.size(); ++i) {
    EXPECT_LE(windows[i].most(), 2 * core::most_admitted(limits[i])) << "limit " << i;
    EXPECT_GT(windows[i].most(), 0U);
  }
  EXPECT_GT(fixture.table->counters().approximated, 1000U);
}

// Where a greedy key is counted changes under it, at any two instants: first it shares a cell, then
// it finds one of its own or none, then a slot. What the three admit together stays within the
// bound.
TEST(HeavyNewcomer, GainsNothingByMovingFromASharedCellToItsOwnAndToASlot) {
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::minstd_rand random{seed};
  std::vector<Limit> limits = heavy_limits();
  const auto others = static_cast<LimitNumber>(limits.size());
  limits.push_back({.algorithm = Algorithm::gcra, .amount = 2, .period = 24h});
  for (LimitNumber limit = 0; limit < others; ++limit) {
    const std::int64_t period = limits[limit].period.count();
    for (int trial = 0; trial < 40; ++trial) {
      Fixture fixture{limits, 5, 2, 1};
      Table& table = *fixture.table;
      const std::int64_t begin = kBegin + static_cast<std::int64_t>(random() % 100'000) * 1'000'000;
      for (std::uint64_t key = 0; key < 400; ++key) {
        (void)table.decide({.key = numbered_key(key), .limit = others, .cost = 2}, at(begin));
      }
      const auto own_cells_at = begin + static_cast<std::int64_t>(random() % 200) * period / 100;
      const auto slots_at = begin + static_cast<std::int64_t>(random() % 200) * period / 100;
      Windows windows{limits[limit].period};
      const Check check{.key = numbered_key(1'000'000), .limit = limit};
      bool own_cells = false;
      bool slots = false;
      for (std::int64_t now = begin; now < begin + 4 * period; now += period / 100) {
        if (!own_cells && now >= own_cells_at) {
          own_cells = true;  // the other keys keep their slots, and lose their cells
          for (std::uint64_t key = 0; key < 400; ++key) {
            if (!table.read(numbered_key(key), at(now))) (void)table.forget(numbered_key(key));
          }
        }
        if (!slots && now >= slots_at) {
          slots = true;
          for (std::uint64_t key = 0; key < 400; ++key) {
            if (table.read(numbered_key(key), at(now))) (void)table.forget(numbered_key(key));
          }
        }
        while (table.decide(check, at(now)).decision.allowed()) windows.add(now, 1);
      }
      EXPECT_LE(windows.most(), 2 * core::most_admitted(limits[limit]))
          << "limit " << limit << ", trial " << trial;
    }
  }
}

// ---- a key with a slot that finds no block ------------------------------------------------------

// All blocks but the key's own are taken: the key keeps its slot, and no new state of it finds a
// place.
class NoBlock : public ::testing::Test {
 protected:
  enum : LimitNumber { kOfTen, kQueued, kCounting };

  static std::vector<Limit> limits() {
    return {
        {.algorithm = Algorithm::sliding_log, .amount = 10, .period = 1h},
        {.algorithm = Algorithm::leaky_bucket,
         .amount = 1,
         .period = 1s,
         .burst = 3,
         .max_delay = 10s},
        {.algorithm = Algorithm::sliding_log, .amount = 10, .period = 1h, .count_rejected = true}};
  }
  void take_all_blocks() {
    constexpr std::size_t kOthers = BlockPool::kSlabBytes / BlockPool::kBlockBytesMin - 1;
    const auto stays = [](std::uint32_t /*slot*/, Handle /*handle*/, bool /*may_evict*/) noexcept {
      return BlockPool::Tenant::stays;
    };
    for (int i = 0; taken_.size() < kOthers && i < 1'000'000; ++i) {
      if (const auto draft = fixture_.blocks->take(1, stays)) taken_.push_back(*draft);
    }
    ASSERT_EQ(taken_.size(), kOthers);
    ASSERT_TRUE(table().read(kKey, kNow).has_value());
  }
  void give_back_all_blocks() {
    for (const BlockPool::Draft& draft : taken_) fixture_.blocks->abandon(draft);
  }
  Table& table() { return *fixture_.table; }
  bool has_slot() { return table().read(kKey, kNow).has_value(); }
  std::uint64_t left_of(LimitNumber limit) {
    return table().decide({.key = kKey, .limit = limit, .cost = 0}, kNow).decision.remaining;
  }
  int admitted_of(int requests, const Check& check) {
    int admitted = 0;
    for (int i = 0; i < requests; ++i) {
      admitted += table().decide(check, kNow).decision.allowed() ? 1 : 0;
    }
    return admitted;
  }

  const Digest kKey = numbered_key(1);
  Fixture fixture_{limits(), 5, 1, 4};
  std::vector<BlockPool::Draft> taken_;
};

// The usage moves to a cell, and counts once: neither anew nor twice.
TEST_F(NoBlock, MovesAKeyWithItsUsageToItsCell) {
  const Check check{.key = kKey, .limit = kOfTen};
  EXPECT_EQ(admitted_of(2, check), 2);
  take_all_blocks();
  EXPECT_EQ(admitted_of(1, check), 1);
  EXPECT_EQ(table().counters().approximated, 1U);
  EXPECT_FALSE(has_slot()) << "one of the two counts it";
  EXPECT_EQ(left_of(kOfTen), 7U);
  EXPECT_EQ(admitted_of(40, check), 7);
  EXPECT_EQ(table().counters().forgiven, 0U);
  give_back_all_blocks();
  EXPECT_EQ(admitted_of(40, check), 0);
}

// Cells of its group belong to others: what the shared one counts comes beside the slot, which
// stays.
TEST_F(NoBlock, KeepsASlotBesideASharedCell) {
  Fixture fixture{limits(), 5, 0, 1};
  for (std::uint64_t key = 100; key < 200; ++key) {  // without blocks, all are in cells
    (void)fixture.table->decide({.key = numbered_key(key), .limit = kOfTen}, kNow);
  }
  const Check bucket{.key = kKey, .limit = kQueued};
  (void)fixture.table->decide(bucket, kNow);
  ASSERT_TRUE(fixture.table->read(kKey, kNow).has_value());
  const Answer moved = fixture.table->decide({.key = kKey, .limit = kOfTen}, kNow);
  EXPECT_FALSE(ApproximateCells::issued_by_own(moved.charge.receipt));
  EXPECT_TRUE(fixture.table->read(kKey, kNow).has_value());
}

// The receipt is of the slot, and the charge is in the cell.
TEST_F(NoBlock, CountsTheRefundThatItLoses) {
  const Check check{.key = kKey, .limit = kOfTen, .cost = 2};
  const Charge charge = table().decide(check, kNow).charge;
  take_all_blocks();
  EXPECT_EQ(admitted_of(1, check), 1);
  table().refund(check, charge, kNow);
  EXPECT_EQ(table().counters().refunds_lost, 2U);
  EXPECT_EQ(left_of(kOfTen), 6U);
}

TEST_F(NoBlock, MovesAForcedCharge) {
  EXPECT_EQ(admitted_of(1, {.key = kKey, .limit = kOfTen, .cost = 4}), 1);
  take_all_blocks();
  (void)table().force({.key = kKey, .limit = kOfTen, .cost = 3}, kNow);
  EXPECT_FALSE(has_slot());
  EXPECT_EQ(left_of(kOfTen), 3U);
}

TEST_F(NoBlock, MovesARejectedRequestThatCounts) {
  EXPECT_EQ(admitted_of(1, {.key = kKey, .limit = kCounting, .cost = 4}), 1);
  take_all_blocks();
  EXPECT_EQ(admitted_of(1, {.key = kKey, .limit = kCounting, .cost = 8}), 0);
  EXPECT_FALSE(has_slot());
  EXPECT_EQ(left_of(kCounting), 0U);
}

// A bucket in a block, since a refund came out of order, whose requests queue. In the cell they
// queue behind those that wait.
TEST_F(NoBlock, MovesAQueueWithItsDelays) {
  const Check check{.key = kKey, .limit = kQueued};
  const Charge first = table().decide(check, kNow).charge;
  EXPECT_EQ(admitted_of(2, check), 2);
  table().refund(check, first, kNow);
  EXPECT_EQ(admitted_of(2, check), 2);
  take_all_blocks();
  for (const Nanos delay : {2s, 3s, 4s, 5s, 6s, 7s, 8s, 9s, 10s}) {
    const Decision decision = table().decide(check, kNow).decision;
    EXPECT_TRUE(decision.allowed());
    EXPECT_EQ(decision.delay, delay);
    EXPECT_FALSE(has_slot());
  }
  EXPECT_EQ(admitted_of(1, check), 0);
}

// A greedy key with one request in its slot: blocks are taken for nearly a period, then they are
// free.
TEST_F(NoBlock, LetsNoKeyUseItsLimitInASlotAndInACell) {
  EXPECT_EQ(admitted_of(1, {.key = kKey, .limit = kOfTen}), 1);
  take_all_blocks();
  Windows windows{1h};
  windows.add(kBegin, 1);
  for (std::int64_t now = kBegin; now < kBegin + 3 * kHour; now += kHour / 100) {
    if (now == kBegin + kHour / 100 * 99) give_back_all_blocks();
    for (const Cost cost : {9U, 5U, 3U, 2U, 1U, 1U}) {
      const Check check{.key = kKey, .limit = kOfTen, .cost = cost};
      if (table().decide(check, at(now)).decision.allowed()) windows.add(now, cost);
    }
  }
  EXPECT_GE(windows.most(), 10U);
  EXPECT_LE(windows.most(), 15U) << "the whole limit, and the half that a cell drains";
}

// ---- idle cells
// -----------------------------------------------------------------------------------

// A store in which no key finds a slot for a day, and no cell is in use.
class IdleCells : public ::testing::Test {
 protected:
  // 1.5 seconds after the cell of a key with 5 in 1 s wraps, when it seems to have half of it left.
  static constexpr std::int64_t kWrapped =
      kBegin + (std::int64_t{1} << (48U - kCellTickBits)) + 500'000'000;

  std::unique_ptr<LocalStore> open(Now now) {
    std::unique_ptr<LocalStore> store = open_file(file_, now);
    used_up_ =
        store->use({.algorithm = Algorithm::fixed_window, .amount = 1, .period = 24h}, now).value();
    five_ = store->use({.algorithm = Algorithm::gcra, .amount = 5, .period = 1s}, now).value();
    return store;
  }
  void fill(LocalStore& store) const {
    std::uint64_t key = 0;
    for (std::uint64_t rejected = 0; rejected < 200'000;) {
      const Check check{
          .key = digest_of(store, ++key), .limit = used_up_, .on_table_full = OnTableFull::reject};
      rejected += store.decide(check, kNow).decision.allowed() ? 0U : 1U;
    }
  }
  // In its cell.
  [[nodiscard]] int admitted_of_five(LocalStore& store, Now now) const {
    const std::uint64_t before = store.status().counters.approximated;
    int admitted = 0;
    const Check check{.key = digest_of(store, kKey), .limit = five_};
    for (int i = 0; i < 8; ++i) admitted += store.decide(check, now).decision.allowed() ? 1 : 0;
    EXPECT_EQ(store.status().counters.approximated, before + 8);
    return admitted;
  }

  static constexpr std::uint64_t kKey = 10'000'000;
  testing::TempFolder folder_;
  std::string file_ = folder_.file("state");
  LimitNumber used_up_ = 0;
  LimitNumber five_ = 0;
};

TEST_F(IdleCells, AreSweptByUpkeep) {
  const auto store = open(kNow);
  fill(*store);
  EXPECT_EQ(admitted_of_five(*store, kNow), 5);
  for (std::int64_t now = kBegin; now < kWrapped; now += kHour / 60) store->upkeep(at(now));
  EXPECT_EQ(admitted_of_five(*store, at(kWrapped)), 5);
}

TEST_F(IdleCells, AreDroppedWhenAFileIsOpenedLater) {
  {
    const auto store = open(kNow);
    fill(*store);
    EXPECT_EQ(admitted_of_five(*store, kNow), 5);
  }
  const auto store = open(at(kWrapped));
  EXPECT_EQ(admitted_of_five(*store, at(kWrapped)), 5);
}

// Restarts that follow each other closely must not put off the sweep for ever.
TEST_F(IdleCells, AreSweptByTheFirstUpkeepOfAFile) {
  {
    const auto store = open(kNow);
    fill(*store);
    EXPECT_EQ(admitted_of_five(*store, kNow), 5);
  }
  for (std::int64_t now = kBegin; now < kWrapped; now += kHour / 2) open(at(now))->upkeep(at(now));
  EXPECT_EQ(admitted_of_five(*open(at(kWrapped)), at(kWrapped)), 5);
}

// ---- files ------------------------------------------------------------------------------------

TEST(FullTableInAFile, KeepsWhatItApproximatedOverARestart) {
  std::string folder = (std::filesystem::temp_directory_path() / "sluice-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/state";
  std::uint64_t newcomer = 10'000'000;
  {
    const auto store = open_file(file, kNow);
    const LimitNumber limit = store->use(full_limits()[kTwo], kNow).value();
    EXPECT_FALSE(store->is_full(kNow));
    // Until the cells are in use; then a key that finds no slot and has a cell for itself.
    for (std::uint64_t key = 0; store->cells_in_use(kNow) < 10; key += 20'000) {
      for (std::uint64_t i = 0; i < 20'000; ++i) {
        (void)store->decide({.key = digest_of(*store, key + i), .limit = limit, .cost = 2}, kNow);
      }
    }
    EXPECT_TRUE(store->is_full(kNow));
    EXPECT_FALSE(store->is_full(at(kBegin + kHour)));
    std::uint64_t approximated = store->status().counters.approximated;
    while (true) {
      const Check check{.key = digest_of(*store, ++newcomer), .limit = limit, .cost = 2};
      const bool allowed = store->decide(check, kNow).decision.allowed();
      if (allowed && store->status().counters.approximated > approximated) break;
      approximated = store->status().counters.approximated;
    }
  }
  {
    const auto store = open_file(file, kNow);
    const LimitNumber limit = store->use(full_limits()[kTwo], kNow).value();
    EXPECT_GE(store->cells_in_use(kNow), 10U);
    const Check check{.key = digest_of(*store, newcomer), .limit = limit};
    EXPECT_FALSE(store->decide(check, kNow).decision.allowed());
  }
  // Longer than a sweep takes to come, and not yet drained.
  const Now later = at(kBegin + kHour + kHour / 2);
  const auto store = open_file(file, later);
  const LimitNumber limit = store->use(full_limits()[kTwo], later).value();
  const Check check{.key = digest_of(*store, newcomer), .limit = limit, .cost = 2};
  EXPECT_FALSE(store->decide(check, later).decision.allowed());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sluice::store
