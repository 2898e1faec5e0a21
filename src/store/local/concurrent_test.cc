// Many threads at once: what they were admitted, together, is what the limit allows.
//
// The clock stands still unless a test says otherwise, so every bound is a number, and in the end
// the table shows what was admitted, or has counted it as forgiven.

#include "store/local/table_fixture.h"
#include "support/effort.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;

using Fixture = TableFixture<DirectAccess>;

const int kRounds = testing::effort(500, 10'000);
constexpr int kThreads = 4;
constexpr std::int64_t kHour = std::int64_t{3600} * 1'000'000'000;
constexpr std::int64_t kBegin = 1000 * kHour;

// Rounds of the same threads: all begin a round together, and `between` runs when all have ended
// it, while the others wait.
void in_rounds(int threads, int rounds, const std::function<void(int thread, int round)>& body,
               const std::function<void(int round)>& between) {
  int round = 0;
  const auto end_round = [&]() noexcept { between(round++); };
  std::barrier barrier{threads, end_round};
  std::vector<std::jthread> team;
  for (int thread = 0; thread < threads; ++thread) {
    team.emplace_back([&, thread] {
      for (int i = 0; i < rounds; ++i) {
        body(thread, i);
        barrier.arrive_and_wait();
      }
    });
  }
}

std::uint64_t used(Fixture& fixture, const Digest& key, Now now) {
  const auto entry = fixture.table->read(key, now);
  return entry ? entry->decision.limit - entry->decision.remaining : 0;
}

// All that the table shows as used; each key in one slot.
std::uint64_t all_used(Fixture& fixture, Now now) {
  std::uint64_t sum = 0;
  std::set<std::uint64_t> seen;
  for (std::size_t slot = 0; slot < fixture.table->slots(); ++slot) {
    const auto entry = fixture.table->read_slot(slot, now);
    if (!entry) continue;
    EXPECT_TRUE(seen.insert(entry->fingerprint).second) << "two slots of one key";
    sum += entry->decision.limit - entry->decision.remaining;
  }
  return sum;
}

Limit limit_of(Algorithm algorithm, std::uint64_t amount) {
  if (algorithm == Algorithm::concurrency) return {.algorithm = algorithm, .amount = amount};
  return {.algorithm = algorithm, .amount = amount, .period = 1h};
}

bool counts_refunds_exactly(Algorithm algorithm) { return !core::is_bucket(algorithm); }

class Concurrent : public ::testing::TestWithParam<Algorithm> {};

// One key, one limit: exactly the limit is admitted, in every round.
TEST_P(Concurrent, ExactlyTheLimitIsAdmitted) {
  constexpr std::uint64_t kAmount = 10;
  Fixture fixture{{limit_of(GetParam(), kAmount)}, 101, 1};
  std::atomic<std::uint64_t> admitted{0};
  int wrong = 0;
  in_rounds(
      kThreads, kRounds,
      [&](int, int round) {
        const Now now = at(kBegin + 3 * kHour * round);  // what was before has expired
        const Check check{.key = numbered_key(static_cast<std::uint64_t>(round)), .limit = 0};
        for (int i = 0; i < 4; ++i) {
          if (fixture.table->decide(check, now).decision.allowed()) admitted.fetch_add(1);
        }
      },
      [&](int) { wrong += admitted.exchange(0) == kAmount ? 0 : 1; });
  EXPECT_EQ(wrong, 0) << "of " << kRounds << " rounds";
  EXPECT_EQ(fixture.table->counters().forgiven, 0U);
}

// Three limits per request, of the thread, of a pair of threads and of all: none is exceeded, what
// is refused without need stays within what is in flight, and what was charged for requests that
// another limit then refused is given back, all of it and nothing else.
TEST_P(Concurrent, SeveralLimitsAreChargedTogetherOrNotAtAll) {
  constexpr Cost kCost = 2;
  constexpr std::uint64_t kAll = 24;
  Fixture fixture{
      {limit_of(GetParam(), 10), limit_of(GetParam(), 14), limit_of(GetParam(), kAll)}, 101, 2};
  std::array<std::atomic<std::uint64_t>, kThreads> admitted{};
  std::array<int, 4> wrong{};
  const auto now_of = [](int round) { return at(kBegin + 3 * kHour * round); };
  const auto key_of = [](int round, int which) {
    return numbered_key(static_cast<std::uint64_t>(round) * 8 + static_cast<std::uint64_t>(which));
  };
  in_rounds(
      kThreads, kRounds / 4,
      [&](int thread, int round) {
        const std::array checks{
            Check{.key = key_of(round, thread), .limit = 0, .cost = kCost},
            Check{.key = key_of(round, kThreads + thread % 2), .limit = 1, .cost = kCost},
            Check{.key = key_of(round, kThreads + 2), .limit = 2, .cost = kCost}};
        std::array<Answer, 3> answers;
        for (int i = 0; i < 6; ++i) {
          if (fixture.table->decide_all(checks, now_of(round), answers)) {
            admitted[static_cast<std::size_t>(thread)].fetch_add(kCost);
          }
        }
      },
      [&](int round) {
        const Now now = now_of(round);
        std::array<std::uint64_t, kThreads> mine{};
        for (std::size_t i = 0; i < kThreads; ++i) mine[i] = admitted[i].exchange(0);
        const std::uint64_t all = mine[0] + mine[1] + mine[2] + mine[3];
        if (all > kAll || mine[0] + mine[2] > 14 || mine[1] + mine[3] > 14) ++wrong[0];
        if (all + (kThreads - 1) * kCost < kAll) ++wrong[1];
        // Refunds of a bucket, out of order, give back what is sure, so it may show more as used.
        const auto differs = [&](std::uint64_t shown, std::uint64_t expected) {
          return counts_refunds_exactly(GetParam()) ? shown != expected : shown < expected;
        };
        if (differs(used(fixture, key_of(round, kThreads + 2), now), all)) ++wrong[2];
        for (int i = 0; i < kThreads; ++i) {
          if (differs(used(fixture, key_of(round, i), now), mine[static_cast<std::size_t>(i)])) {
            ++wrong[3];
          }
        }
      });
  EXPECT_EQ(wrong[0], 0) << "rounds in which a limit was exceeded";
  EXPECT_EQ(wrong[1], 0) << "rounds that fell short by more than what is in flight";
  EXPECT_EQ(wrong[2], 0) << "rounds in which the common limit shows another sum";
  EXPECT_EQ(wrong[3], 0) << "rounds in which a thread's own limit shows another sum";
}

// Charges that are refunded at once: never more of them at a time than the limit, and in the end
// nothing is used.
TEST_P(Concurrent, RefundsMeetCharges) {
  constexpr std::int64_t kAmount = 3;
  Fixture fixture{{limit_of(GetParam(), kAmount)}, 101, 1};
  const Check check{.key = numbered_key(1), .limit = 0};
  const Now now = at(kBegin);
  std::atomic<std::int64_t> held{0};
  std::atomic<std::int64_t> most{0};
  std::atomic<int> admitted{0};
  in_rounds(
      kThreads, 1,
      [&](int, int) {
        for (int i = 0; i < kRounds; ++i) {
          const Answer answer = fixture.table->decide(check, now);
          if (!answer.decision.allowed()) continue;
          admitted.fetch_add(1);
          const std::int64_t holding = held.fetch_add(1) + 1;
          std::int64_t seen = most.load();
          while (seen < holding && !most.compare_exchange_weak(seen, holding)) {
          }
          held.fetch_sub(1);
          fixture.table->refund(check, answer.charge, now);
        }
      },
      [](int) {});
  EXPECT_LE(most.load(), kAmount);
  EXPECT_GE(admitted.load(), kAmount);
  if (counts_refunds_exactly(GetParam())) {
    EXPECT_EQ(used(fixture, check.key, now), 0U);
    EXPECT_GT(admitted.load(), kRounds / 2) << "refunds made no room";
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Concurrent,
                         ::testing::Values(Algorithm::gcra, Algorithm::fixed_window,
                                           Algorithm::sliding_counter, Algorithm::sliding_log,
                                           Algorithm::sliding_buckets, Algorithm::concurrency),
                         [](const auto& subject) { return std::string{to_string(subject.param)}; });

// Clocks of threads differ: each reads any instant of five seconds. A bucket then admits what it
// does in five seconds at most, and a window its amount in each second.
TEST(ConcurrentClocks, ThreadsThatAreLateGrantNothing) {
  constexpr std::int64_t kSpan = 5'000'000'000;
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  Fixture fixture{{{.algorithm = Algorithm::gcra, .amount = 10, .period = 1s},
                   {.algorithm = Algorithm::fixed_window, .amount = 10, .period = 1s}},
                  101,
                  1};
  std::array<std::atomic<std::uint64_t>, 2> admitted{};
  std::array<std::uint64_t, 2> most{};
  in_rounds(
      kThreads, kRounds / 20,
      [&](int thread, int round) {
        std::minstd_rand random{seed + static_cast<unsigned>(round * kThreads + thread)};
        std::uniform_int_distribution<std::int64_t> instants{0, kSpan - 1};
        for (int i = 0; i < 60; ++i) {
          const Now now = at(kBegin + kHour * round + instants(random));
          for (LimitNumber limit = 0; limit < 2; ++limit) {
            const auto number = static_cast<std::uint64_t>(round) * 2 + limit;
            const Check check{.key = numbered_key(number), .limit = limit};
            if (fixture.table->decide(check, now).decision.allowed()) admitted[limit].fetch_add(1);
          }
        }
      },
      [&](int) {
        for (std::size_t i = 0; i < 2; ++i) most[i] = std::max(most[i], admitted[i].exchange(0));
      });
  EXPECT_LE(most[0], 10U + 10U * 5U);
  EXPECT_LE(most[1], 10U * 5U);
}

TEST(ConcurrentCrowd, SixtyFourThreadsShareOneKey) {
  constexpr std::uint64_t kAmount = 1000;
  for (const Algorithm algorithm : {Algorithm::gcra, Algorithm::sliding_log}) {
    Fixture fixture{{limit_of(algorithm, kAmount)}, 5, 2};
    std::atomic<std::uint64_t> admitted{0};
    in_rounds(
        64, 1,
        [&](int, int) {
          for (int i = 0; i < 50; ++i) {
            const Check check{.key = numbered_key(1), .limit = 0};
            const Answer answer = fixture.table->decide(check, at(kBegin));
            if (answer.decision.allowed()) admitted.fetch_add(1);
          }
        },
        [](int) {});
    EXPECT_EQ(admitted.load(), kAmount);
    EXPECT_EQ(fixture.table->counters().untracked, 0U);
  }
}

// Threads insert the same keys into a table that has little room left: whoever is evicted or not
// tracked is counted, so the sums agree, and no key has two slots.
TEST(ConcurrentCrowd, TheSameKeysIntoATableThatIsNearlyFull) {
  Fixture fixture{
      {limit_of(Algorithm::fixed_window, 10), limit_of(Algorithm::fixed_window, 3)}, 61, 0};
  const Now now = at(kBegin);
  std::atomic<std::uint64_t> admitted{0};
  for (std::uint64_t i = 0; i < fixture.table->slots() * 9 / 10; ++i) {
    const Check check{
        .key = numbered_key(1'000'000 + i), .limit = 0, .cost = static_cast<Cost>(1 + i % 10)};
    ASSERT_TRUE(fixture.table->decide(check, now).decision.allowed());
    admitted += check.cost;  // of those without room, too
  }
  in_rounds(
      kThreads, 1000,
      [&](int, int round) {
        const Check check{.key = numbered_key(static_cast<std::uint64_t>(round)), .limit = 1};
        if (fixture.table->decide(check, now).decision.allowed()) admitted.fetch_add(1);
      },
      [](int) {});
  const TableCounters counters = fixture.table->counters();
  EXPECT_EQ(admitted.load(), all_used(fixture, now) + counters.forgiven);
  EXPECT_GT(counters.evicted, 0U);
  EXPECT_GT(counters.untracked, 0U);
}

// States in blocks: a long log under contention is exact.
TEST(ConcurrentBlocks, ALogOfAHundredIsExact) {
  constexpr std::uint64_t kAmount = 100;
  Fixture fixture{{limit_of(Algorithm::sliding_log, kAmount)}, 101, 8};  // a slab for each size
  std::atomic<std::uint64_t> admitted{0};
  int wrong = 0;
  in_rounds(
      kThreads, kRounds / 20,
      [&](int thread, int round) {
        const Check check{.key = numbered_key(static_cast<std::uint64_t>(round)), .limit = 0};
        for (int i = 0; i < 40; ++i) {
          // Every entry at an instant of its own, so that the log is long.
          const Now now = at(kBegin + 3 * kHour * round + i * kThreads + thread);
          if (fixture.table->decide(check, now).decision.allowed()) admitted.fetch_add(1);
        }
      },
      [&](int) { wrong += admitted.exchange(0) == kAmount ? 0 : 1; });
  EXPECT_EQ(wrong, 0);
}

// Fewer blocks than states: those that go are counted, no block serves two keys.
TEST(ConcurrentBlocks, AFewSlabsForManyLogs) {
  Fixture fixture{{limit_of(Algorithm::sliding_log, 2), limit_of(Algorithm::sliding_log, 6),
                   limit_of(Algorithm::sliding_log, 100)},
                  1021,
                  3};
  const Now now = at(kBegin);
  std::atomic<std::uint64_t> admitted{0};
  in_rounds(
      kThreads, 1,
      [&](int thread, int) {
        std::minstd_rand random{static_cast<unsigned>(thread) + 1};
        for (int i = 0; i < 4 * kRounds; ++i) {
          const std::uint64_t number = random() % 20'000;
          const Check check{.key = numbered_key(number),
                            .limit = static_cast<LimitNumber>(number % 3),
                            .cost = static_cast<Cost>(1 + random() % 2)};
          const Answer answer = fixture.table->decide(check, now);
          if (answer.decision.allowed()) admitted.fetch_add(check.cost);
        }
      },
      [](int) {});
  EXPECT_EQ(admitted.load(), all_used(fixture, now) + fixture.table->counters().forgiven);
}

}  // namespace
}  // namespace sluice::store
