// Who goes when there is no room, and what is counted then: one thread, so that a model knows.

#include "store/local/table_fixture.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <map>
#include <random>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;

using Fixture = TableFixture<DirectAccess>;

constexpr std::int64_t kHour = std::int64_t{3600} * 1'000'000'000;
constexpr Now kNow = at(1000 * kHour);
constexpr Now kMuchLater = at(1010 * kHour);

Limit window(std::uint64_t amount) {
  return {.algorithm = Algorithm::fixed_window, .amount = amount, .period = 1h};
}
Limit log(std::uint64_t amount) {
  return {.algorithm = Algorithm::sliding_log, .amount = amount, .period = 1h};
}

struct Owed {
  std::uint64_t used = 0;
  std::uint64_t of = 1;

  [[nodiscard]] std::uint64_t share() const { return Debt{.used = used, .of = of}.share(); }
};
using Books = std::map<std::uint64_t, Owed>;  // by fingerprint

Books books_of(Fixture& fixture, Now now) {
  Books books;
  for (std::size_t slot = 0; slot < fixture.table->slots(); ++slot) {
    const auto entry = fixture.table->read_slot(slot, now);
    if (!entry) continue;
    const std::uint64_t used = entry->decision.limit - entry->decision.remaining;
    EXPECT_TRUE(books.emplace(entry->fingerprint, Owed{used, entry->decision.limit}).second);
  }
  return books;
}

std::uint64_t sum(const Books& books) {
  std::uint64_t used = 0;
  for (const auto& [fingerprint, owed] : books) used += owed.used;
  return used;
}

// A new key with any debt: at most one slot changes hands, it owed less than the newcomer does, and
// every counter moves by what the slots show.
void expect_right_eviction(Fixture& fixture, const Check& check, std::uint64_t of) {
  const Books before = books_of(fixture, kNow);
  TableCounters expected = fixture.table->counters();
  ASSERT_TRUE(fixture.table->decide(check, kNow).decision.allowed());

  const Books after = books_of(fixture, kNow);
  const std::uint64_t share = Owed{check.cost, of}.share();
  if (after.contains(Table::fingerprint_of(check.key))) {
    ++expected.inserted;
    for (const auto& [fingerprint, owed] : before) {
      if (after.contains(fingerprint)) continue;
      EXPECT_LT(owed.share(), share) << "displaced by equal or less debt";
      EXPECT_LT(owed.share(), Debt::kWhole / 2) << "displaced although it owed half";
      ++expected.evicted;
      expected.forgiven += owed.used;
    }
  } else {
    ++expected.untracked;
    expected.forgiven += check.cost;
    EXPECT_EQ(after.size(), before.size());
    const auto smaller =
        std::count_if(before.begin(), before.end(), [&](const Books::value_type& entry) {
          return entry.second.share() < std::min(share, Debt::kWhole / 2);
        });
    EXPECT_LE(smaller, 8) << "only one group of the five is out of a key's reach";
  }
  const TableCounters counters = fixture.table->counters();
  EXPECT_EQ(counters.inserted, expected.inserted);
  EXPECT_EQ(counters.evicted, expected.evicted);
  EXPECT_EQ(counters.untracked, expected.untracked);
  EXPECT_EQ(counters.forgiven, expected.forgiven);
}

TEST(Eviction, TakesLessDebtThanTheNewcomersAndCountsIt) {
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::minstd_rand random{seed};
  std::uint64_t evicted = 0;
  std::uint64_t untracked = 0;
  // Once the least debt is half, nobody is evicted any more: many tables, each for a while.
  for (std::uint64_t round = 0; round < 50 && !::testing::Test::HasFailure(); ++round) {
    Fixture fixture{{window(10), window(100), window(1000)}, 5, 0};
    for (std::uint64_t i = 0; i < 100; ++i) {
      const auto limit = static_cast<LimitNumber>(random() % 3);
      const std::uint64_t of = std::array{10U, 100U, 1000U}[limit];
      const auto cost = static_cast<Cost>(1 + random() % of);
      expect_right_eviction(
          fixture, {.key = numbered_key(round * 100 + i), .limit = limit, .cost = cost}, of);
    }
    evicted += fixture.table->counters().evicted;
    untracked += fixture.table->counters().untracked;
  }
  EXPECT_GT(evicted, 100U);
  EXPECT_GT(untracked, 100U);
}

// Whoever prefers it gets a refusal instead, with the time after which somebody's debt has expired.
TEST(Eviction, RefusesWhenAskedTo) {
  Fixture fixture{{window(10)}, 5, 0};
  for (std::uint64_t number = 0; number < 2000; ++number) {
    (void)fixture.table->decide({.key = numbered_key(number), .limit = 0, .cost = 6}, kNow);
  }
  const Books before = books_of(fixture, kNow);
  ASSERT_EQ(before.size(), fixture.table->slots());
  const std::uint64_t forgiven = fixture.table->counters().forgiven;

  const Check check{.key = numbered_key(5000), .limit = 0, .on_table_full = OnTableFull::reject};
  const Answer answer = fixture.table->decide(check, kNow);
  EXPECT_EQ(answer.decision.verdict, Verdict::rejected);
  EXPECT_EQ(answer.decision.retry_after, Nanos{1h});
  EXPECT_EQ(answer.charge.receipt.cost, 0U);
  EXPECT_EQ(fixture.table->counters().rejected_for_room, 1U);
  EXPECT_EQ(fixture.table->counters().forgiven, forgiven);
  EXPECT_EQ(books_of(fixture, kNow).size(), before.size());

  const Now after_wait = at(1001 * kHour);
  EXPECT_TRUE(fixture.table->decide(check, after_wait).decision.allowed());
}

TEST(Eviction, ExpiredSlotsAreTakenWithoutForgiving) {
  Fixture fixture{{window(10)}, 5, 0};
  for (std::uint64_t number = 0; number < 2000; ++number) {
    (void)fixture.table->decide({.key = numbered_key(number), .limit = 0}, kNow);
  }
  ASSERT_EQ(books_of(fixture, kNow).size(), fixture.table->slots());
  const TableCounters before = fixture.table->counters();
  for (std::uint64_t number = 0; number < 20; ++number) {
    (void)fixture.table->decide({.key = numbered_key(9000 + number), .limit = 0}, kMuchLater);
  }
  const TableCounters after = fixture.table->counters();
  EXPECT_EQ(after.forgiven, before.forgiven);
  EXPECT_EQ(after.evicted, before.evicted);
  EXPECT_EQ(after.inserted, before.inserted + 20);
  EXPECT_EQ(sum(books_of(fixture, kMuchLater)), 20U);
}

// All keys owe the same, so that whoever finds no empty slot is forgiven.
TEST(Eviction, IsRareUntilTheTableIsAlmostFull) {
  Fixture fixture{{window(10)}, Table::groups_within(131'072), 0};
  const std::uint64_t slots = fixture.table->slots();
  std::uint64_t number = 0;
  std::uint64_t forgiven = 0;
  for (const std::uint64_t percent : {50U, 90U}) {
    const std::uint64_t first = number;
    while (number < slots * percent / 100) {
      (void)fixture.table->decide({.key = numbered_key(number++), .limit = 0}, kNow);
    }
    const std::uint64_t count = fixture.table->counters().forgiven - forgiven;
    forgiven += count;
    const double share = 100.0 * static_cast<double>(count) / static_cast<double>(number - first);
    std::cout << "up to " << percent << " % of " << slots << " slots: " << count << " of "
              << number - first << " inserts forgave debt, " << share << " %\n";
    if (percent == 50) {
      EXPECT_LT(share, 0.05);
    }
  }
}

// ---- blocks
// --------------------------------------------------------------------------------------

// Keys whose states need a block, until there is none left: what they then do is counted, and each
// unit of cost is in the table or forgiven.
TEST(Eviction, CountsWhatFindsNoBlock) {
  Fixture fixture{{log(2)}, 1021, 1};
  std::uint64_t refused = 0;
  for (std::uint64_t number = 0; number < 6000; ++number) {
    const Check check{.key = numbered_key(number),
                      .limit = 0,
                      .on_table_full = number % 2 == 0 ? OnTableFull::allow : OnTableFull::reject};
    refused += fixture.table->decide(check, kNow).decision.allowed() ? 0U : 1U;
  }
  const TableCounters counters = fixture.table->counters();
  EXPECT_GT(refused, 100U);
  EXPECT_EQ(counters.rejected_for_room, refused);
  EXPECT_EQ(counters.untracked, counters.forgiven);
  EXPECT_EQ(sum(books_of(fixture, kNow)) + counters.forgiven + refused, 6000U);
  EXPECT_GT(counters.inserted, 1000U) << "of 1025 blocks";
}

// A refund that has to be remembered and finds no block is lost; nothing was admitted by it and
// nothing forgiven.
TEST(Eviction, DoesNotCountARefundThatFindsNoBlock) {
  Fixture fixture{{log(2), {.algorithm = Algorithm::gcra, .amount = 10, .period = 1h}}, 1021, 1};
  const Check check{.key = numbered_key(100'000), .limit = 1, .cost = 2};
  const Charge first = fixture.table->decide(check, kNow).charge;
  (void)fixture.table->decide(check, kNow);
  for (std::uint64_t number = 0; number < 6000; ++number) {
    (void)fixture.table->decide({.key = numbered_key(number), .limit = 0}, kNow);
  }
  const TableCounters before = fixture.table->counters();
  fixture.table->refund(check, first, kNow);
  const TableCounters after = fixture.table->counters();
  EXPECT_EQ(after.untracked, before.untracked);
  EXPECT_EQ(after.forgiven, before.forgiven);
  Check peek = check;
  peek.cost = 0;
  EXPECT_EQ(fixture.table->decide(peek, kNow).decision.remaining, 6U);
}

// Small blocks have taken all memory. When their tenants have expired, states of another size get a
// slab of it, after a while.
TEST(Eviction, SlabsGoToAnotherSizeWhenTheirTenantsHaveExpired) {
  Fixture fixture{{log(2), log(6)}, 2039, 2};
  for (std::uint64_t number = 0; number < 9000; ++number) {
    (void)fixture.table->decide({.key = numbered_key(number), .limit = 0}, kNow);
  }
  const TableCounters full = fixture.table->counters();
  EXPECT_GT(full.untracked, 0U);

  const Check check{.key = numbered_key(50'000), .limit = 1};
  const auto used_by = [&](Now now) {
    const auto entry = fixture.table->read(check.key, now);
    return entry ? entry->decision.limit - entry->decision.remaining : 0;
  };
  std::int64_t instant = 1010 * kHour;
  int requests = 0;
  while (used_by(at(instant)) < 6 && requests < 200) {
    (void)fixture.table->decide(check, at(++instant));  // an entry of its own in the log
    ++requests;
  }
  std::cout << requests << " requests until six were tracked\n";
  EXPECT_EQ(used_by(at(instant)), 6U);
  EXPECT_FALSE(fixture.table->decide(check, at(instant)).decision.allowed());
}

}  // namespace
}  // namespace sluice::store
