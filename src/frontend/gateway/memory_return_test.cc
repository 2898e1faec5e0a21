#include "frontend/gateway/memory_return.h"

#include <gtest/gtest.h>

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;

TEST(MemoryReturn, WaitsUntilMuchWasFreed) {
  MemoryReturn memory;
  const MonoTime now{1h};
  memory.freed(MemoryReturn::kWorthReturning - 1);
  EXPECT_FALSE(memory.is_due_some_time());
  EXPECT_FALSE(memory.take(now));
  memory.freed(1);
  EXPECT_TRUE(memory.is_due_some_time());
  EXPECT_TRUE(memory.take(now));
  EXPECT_FALSE(memory.is_due_some_time());
}

// It stalls the loop of a worker, so floods that follow one another are paid for together.
TEST(MemoryReturn, HappensOnceAMinuteAtMost) {
  MemoryReturn memory;
  MonoTime now{1h};
  int times = 0;
  for (int second = 0; second < 600; second += 5, now += 5s) {
    memory.freed(4 * MemoryReturn::kWorthReturning);
    times += memory.take(now) ? 1 : 0;
  }
  EXPECT_EQ(times, 10);
  EXPECT_TRUE(memory.is_due_some_time()) << "the last flood is not forgotten";
  EXPECT_TRUE(memory.take(now));
}

}  // namespace
}  // namespace sluice::gateway
