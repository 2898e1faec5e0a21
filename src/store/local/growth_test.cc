// States that grow find room, so that their limits hold.

#include "base/digest.h"
#include "store/local/local_store.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;

constexpr std::int64_t kBegin = Nanos{1000h}.count();

std::unique_ptr<LocalStore> open_store(std::size_t memory) {
  return LocalStore::open({.mapping = {.memory = memory}}, at(kBegin)).value();
}

Digest key_of(const LocalStore& store, const std::string& name) {
  return KeyDigest{store.secret()}.add(1, name).finish();
}

LimitNumber log_of(LocalStore& store, std::uint64_t amount) {
  return store
      .use({.algorithm = Algorithm::sliding_log, .amount = amount, .period = 1h}, at(kBegin))
      .value();
}

// Requests of a nanosecond each, so that every one needs an entry.
std::uint64_t admitted(LocalStore& store, const Check& check, std::uint64_t requests) {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < requests; ++i) {
    const Now now = at(kBegin + static_cast<std::int64_t>(i));
    if (store.decide(check, now).decision.allowed()) ++count;
  }
  return count;
}

// Through all sizes of blocks, in the smallest table there is, one key after the other: slabs that
// one has outgrown go to the next.
TEST(Growth, ALogOfAnyLengthIsExactInTheSmallestTable) {
  for (const std::uint64_t amount : {1U, 2U, 3U, 6U, 100U, 1000U, 4096U}) {
    const std::unique_ptr<LocalStore> store = open_store(Mapping::kMemoryMin);
    for (const char* name : {"first", "second"}) {
      const Check check{.key = key_of(*store, name), .limit = log_of(*store, amount)};
      EXPECT_EQ(admitted(*store, check, amount + 10), amount) << name;
    }
    EXPECT_EQ(store->status().counters.approximated, 0U);
  }
}

// Small states that take all the room they can get leave a slab to each of the next sizes.
TEST(Growth, AFloodOfSmallLogsLeavesRoomForALongerOne) {
  const std::unique_ptr<LocalStore> store = open_store(4 * Mapping::kMemoryMin);
  const LimitNumber small = log_of(*store, 1000);
  for (int i = 0; i < 200'000; ++i) {
    (void)store->decide({.key = key_of(*store, std::to_string(i)), .limit = small}, at(kBegin));
  }
  ASSERT_GT(store->status().counters.approximated, 0U);  // it took all
  const LimitNumber longer = log_of(*store, 100);
  // Approximate counts would give its slot a start that other keys have used.
  const Check check{.key = key_of(*store, "offender"),
                    .limit = longer,
                    .cost = 10,
                    .on_table_full = OnTableFull::allow};
  EXPECT_EQ(admitted(*store, check, 50), 10U);
}

}  // namespace
}  // namespace sluice::store
