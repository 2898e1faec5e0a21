// A flood of keys that come once, in a table that is too small for it, against offenders that are
// blocked: these stay blocked.
//
// What guards them is the order of eviction. An offender has used all of its limit, and whoever
// comes once has used its first request: by their shares, the flood's slots go first, and where
// there is none with a smaller share than its own, a newcomer gets no slot. The least recently used
// slot would be the wrong one to evict, and so would be a random one: the flood touches every group
// far more often than any offender does. Under a limit of one, the first request uses all: there
// the newcomer's share counts for half, or an offender would go whenever one token of its hundred
// has dripped in.

#include "store/local/table_fixture.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;

using Fixture = TableFixture<DirectAccess>;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kBegin = std::int64_t{86'400} * 1000 * kSecond;
constexpr std::int64_t kRun = 200 * kSecond;
constexpr std::int64_t kGap = 170'000'000;  // between requests of an offender: almost six a second
constexpr std::size_t kGroups = 53;

enum : LimitNumber { kBurstOne, kBurstHundred, kDay, kKinds };

std::vector<Limit> limits() {
  return {{.algorithm = Algorithm::gcra, .amount = 1, .period = 1s},
          {.algorithm = Algorithm::gcra, .amount = 100, .period = 100s},
          {.algorithm = Algorithm::fixed_window, .amount = 300, .period = 24h}};
}

std::uint64_t allowed_in_run(LimitNumber kind) {
  if (kind == kDay) return 300;
  return (kind == kBurstOne ? 1 : 100) + kRun / kSecond;
}

struct Offender {
  Check check;
  std::int64_t next = 0;
  std::uint64_t admitted = 0;
  std::uint64_t untracked = 0;  // of them

  bool request(Fixture& fixture, Now now) {
    const Answer answer = fixture.table->decide(check, now);
    if (!answer.decision.allowed()) return false;
    ++admitted;
    if (answer.charge.receipt.cost == 0) ++untracked;
    return true;
  }
};

struct Flood {
  LimitNumber kind = 0;
  OnTableFull on_table_full = OnTableFull::allow;
};

// Offenders of all kinds exhaust their limits; then, as they go on, twice as many keys come in each
// second as there are slots.
std::vector<Offender> offenders_in_flood(Fixture& fixture, const Flood& flood) {
  std::vector<Offender> offenders;
  for (std::uint64_t i = 0; i < 15; ++i) {
    const Check check{.key = numbered_key(i),
                      .limit = static_cast<LimitNumber>(i % kKinds),
                      .on_table_full = flood.on_table_full};
    offenders.push_back(
        {.check = check, .next = kBegin + static_cast<std::int64_t>(i) * 11'000'000});
    while (offenders.back().request(fixture, at(kBegin))) {
    }
  }
  const std::int64_t flood_gap = kSecond / (2 * static_cast<std::int64_t>(fixture.table->slots()));
  std::uint64_t number = 1000;
  for (std::int64_t now = kBegin; now < kBegin + kRun; now += flood_gap) {
    const Check once{
        .key = numbered_key(++number), .limit = flood.kind, .on_table_full = flood.on_table_full};
    (void)fixture.table->decide(once, at(now));
    for (Offender& offender : offenders) {
      if (offender.next > now) continue;
      offender.next += kGap;
      (void)offender.request(fixture, at(now));
    }
  }
  return offenders;
}

void expect_blocked(const std::vector<Offender>& offenders) {
  for (const Offender& offender : offenders) {
    const std::uint64_t allowed = allowed_in_run(offender.check.limit);
    EXPECT_LE(100 * offender.admitted, 101 * allowed)
        << "offender of kind " << offender.check.limit;
    // Without the table's memory it would have had almost six requests a second.
    EXPECT_GE(2 * offender.admitted, allowed) << "offender of kind " << offender.check.limit;
  }
}

TEST(Flood, OfKeysUnderBurstsOfAHundredLetsNoOffenderThrough) {
  Fixture fixture{limits(), kGroups, 0};
  expect_blocked(offenders_in_flood(fixture, {.kind = kBurstHundred}));
  EXPECT_GT(fixture.table->counters().untracked, 10'000U) << "the table was not full";
}

TEST(Flood, OfKeysUnderDayQuotasLetsNoOffenderThrough) {
  Fixture fixture{limits(), kGroups, 0};
  expect_blocked(offenders_in_flood(fixture, {.kind = kDay}));
  EXPECT_GT(fixture.table->counters().untracked, 10'000U) << "the table was not full";
}

// The hardest: every key of the flood has used all of its limit. Offenders under larger limits stay
// blocked. One under a limit of one is in no greater debt than the flood, and has no slot once its
// second is over: what it is then admitted beyond its limit is counted as untracked.
TEST(Flood, OfKeysUnderBurstsOfOneLetsNoLargerOffenderThrough) {
  Fixture fixture{limits(), kGroups, 0};
  std::vector<Offender> offenders = offenders_in_flood(fixture, {.kind = kBurstOne});
  std::uint64_t most = 0;
  for (Offender& offender : offenders) {
    if (offender.check.limit != kBurstOne) continue;
    most = std::max(most, offender.admitted);
    offender.admitted -= offender.untracked;
  }
  std::cout << "a flood that nothing tells from an offender: " << most << " admitted of "
            << allowed_in_run(kBurstOne) << " allowed\n";
  expect_blocked(offenders);
  EXPECT_GT(fixture.table->counters().untracked, 10'000U) << "the table was not full";
}

// Whoever prefers to refuse newcomers keeps every offender blocked.
TEST(Flood, RefusedForRoomLetsNobodyThrough) {
  for (const LimitNumber kind : {kBurstOne, kBurstHundred, kDay}) {
    Fixture fixture{limits(), kGroups, 0};
    expect_blocked(
        offenders_in_flood(fixture, {.kind = kind, .on_table_full = OnTableFull::reject}));
    EXPECT_EQ(fixture.table->counters().untracked, 0U);
  }
}

// Counted in cells, a flood lets no offender through that has a slot. One under a limit of one
// loses its slot to the flood once a second; with the cells it still stays below twice its limit.
TEST(Flood, CountedApproximatelyLetsNobodyThroughTwice) {
  for (const LimitNumber kind : {kBurstOne, kBurstHundred, kDay}) {
    Fixture fixture{limits(), kGroups, 0, 8};
    const Flood flood{.kind = kind, .on_table_full = OnTableFull::approximate};
    std::vector<Offender> offenders = offenders_in_flood(fixture, flood);
    for (const Offender& offender : offenders) {
      const bool displaced = kind == kBurstOne && offender.check.limit == kBurstOne;
      const std::uint64_t allowed = allowed_in_run(offender.check.limit);
      EXPECT_LE(100 * offender.admitted, (displaced ? 200 : 101) * allowed)
          << "offender of kind " << offender.check.limit << " in a flood of kind " << kind;
    }
    EXPECT_EQ(fixture.table->counters().untracked, 0U);
    EXPECT_GT(fixture.table->counters().approximated, 10'000U) << "the table was not full";
  }
}

}  // namespace
}  // namespace sluice::store
