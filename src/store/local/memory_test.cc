// Whoever sends new keys, however many, gets no memory for it: all there is was there at the start.

#include "store/local/local_store.h"
#include "store/local/table_fixture.h"
#include "support/effort.h"
#include "support/sanitizers.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <unistd.h>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;

const auto kKeys = testing::effort<std::uint64_t>(1'000'000, 100'000'000);
constexpr std::int64_t kBegin = std::int64_t{3'600'000'000'000} * 1000;

std::int64_t resident_bytes() {
  std::ifstream statm{"/proc/self/statm"};
  std::int64_t all = 0;
  std::int64_t resident = 0;
  statm >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

constexpr std::uint64_t kAtOnce = 50;  // in batches, to be done sooner

struct Growth {
  std::uint64_t keys = 0;
  std::int64_t gap = 0;  // between two of them
  std::size_t memory = std::size_t{8} << 20U;
};

void expect_no_growth(const Limit& limit, const Growth& growth) {
  auto opened = LocalStore::open({.mapping = {.memory = growth.memory}}, at(kBegin));
  ASSERT_TRUE(opened);
  LocalStore& store = **opened;
  const LimitNumber number = store.use(limit, at(kBegin)).value();
  std::int64_t warm = 0;
  for (std::uint64_t from = 0; from < growth.keys; from += kAtOnce) {
    if (from == growth.keys / 2) warm = resident_bytes();  // all pages have been touched
    std::array<Check, kAtOnce> checks;
    std::array<Answer, kAtOnce> answers;
    for (std::uint64_t i = 0; i < kAtOnce; ++i) {
      checks[i] = {.key = numbered_key(from + i), .limit = number};
    }
    store.decide_batch(checks, at(kBegin + static_cast<std::int64_t>(from) * growth.gap), answers);
  }
  const std::int64_t grown = resident_bytes() - warm;
  const TableCounters counters = store.status().counters;
  std::cout << growth.keys << " keys: " << grown << " bytes more; " << counters.inserted
            << " inserted, " << counters.evicted << " evicted, " << counters.untracked
            << " untracked\n";
  // ThreadSanitizer keeps records of its own, by the megabyte.
  if (!testing::kThreadSanitizer) {
    EXPECT_LT(grown, std::int64_t{1} << 20U);
  }
}

TEST(Memory, StaysAsItIsUnderAHundredMillionKeys) {
  // 100,000 in debt at a time.
  expect_no_growth({.algorithm = Algorithm::gcra, .amount = 1, .period = 1s},
                   {.keys = kKeys, .gap = 10'000});
}

TEST(Memory, StaysAsItIsWithStatesInBlocks) {
  // 10,000 in debt at a time.
  expect_no_growth({.algorithm = Algorithm::sliding_log, .amount = 2, .period = 1s},
                   {.keys = kKeys / 50, .gap = 100'000});
}

// All of them stay in debt: more than there is room for.
TEST(Memory, StaysAsItIsWhenItIsFull) {
  expect_no_growth({.algorithm = Algorithm::fixed_window, .amount = 5, .period = 24h},
                   {.keys = 150'000, .gap = 1, .memory = Mapping::kMemoryMin});
  expect_no_growth({.algorithm = Algorithm::sliding_log, .amount = 2, .period = 24h},
                   {.keys = 15'000, .gap = 1, .memory = Mapping::kMemoryMin});
}

}  // namespace
}  // namespace sluice::store
