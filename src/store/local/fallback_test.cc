// The table on the compiler's own 16-byte exchange, as on other processors: threads in each other's
// way admit what the limit allows, to the unit.

#include "store/local/state_file_test.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sluice::store {
namespace {

#ifndef SLUICE_ATOMIC16_BUILTIN
#error "this program is about the fallback"
#endif

TEST(Fallback, ExchangesOnlyWhatIsExpected) {
  Pair pair{.key = 1, .state = 2};
  EXPECT_FALSE(exchange16(&pair, {.key = 1, .state = 3}, {.key = 4, .state = 5}));
  EXPECT_FALSE(exchange16(&pair, {.key = 3, .state = 2}, {.key = 4, .state = 5}));
  EXPECT_EQ(load16(&pair), (Pair{.key = 1, .state = 2}));
  EXPECT_TRUE(exchange16(&pair, {.key = 1, .state = 2}, {.key = 4, .state = 5}));
  EXPECT_EQ(load16(&pair), (Pair{.key = 4, .state = 5}));
}

class FallbackOf : public ::testing::TestWithParam<testing::Subject> {};

// Time stands still. Refused requests that consume are the models' affair.
TEST_P(FallbackOf, AdmitsExactlyTheLimitBetweenThreads) {
  constexpr int kThreads = 3;
  constexpr std::uint64_t kKeys = 64;
  const Now now = testing::at(1'700'000'000'000'000'000);
  const std::unique_ptr<LocalStore> store = open_file("", now, 8 * Mapping::kMemoryMin);
  const LimitNumber limit = store->use(GetParam().limit, now).value();
  std::vector<std::atomic<std::uint64_t>> admitted(kKeys);
  const auto hammer = [&] {
    for (int round = 0; round < 20; ++round) {
      for (std::uint64_t key = 0; key < kKeys; ++key) {
        const Check check{.key = digest_of(*store, key), .limit = limit};
        admitted[key] += store->decide(check, now).decision.allowed() ? 1U : 0U;
      }
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(hammer);
  threads.clear();
  const StoredLimit alone = StoredLimit::from(GetParam().limit).value();
  StateBuffer state;
  state.set(alone.idle(now));
  std::uint64_t expected = 0;
  for (int i = 0; i < 20 * kThreads; ++i) {
    expected += alone.apply({}, state, now).outcome.decision.allowed() ? 1U : 0U;
  }
  for (const auto& count : admitted) EXPECT_EQ(count, expected);
}

INSTANTIATE_TEST_SUITE_P(Subjects, FallbackOf, ::testing::ValuesIn(testing::all_subjects()),
                         [](const auto& subject) { return subject.param.name; });

}  // namespace
}  // namespace sluice::store
