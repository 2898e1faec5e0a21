#include "frontend/gateway/buffer_pool.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::gateway {
namespace {

using Pool = SparePool<int>;

Pool filled(std::size_t count) {
  Pool pool;
  for (std::size_t i = 0; i < count; ++i) pool.give_back(std::make_unique<int>(0));
  return pool;
}

// Takes so many at once, and gives them back.
void use(Pool& pool, std::size_t count) {
  std::vector<std::unique_ptr<int>> taken;
  for (std::size_t i = 0; i < count; ++i) taken.push_back(pool.take());
  for (auto& one : taken) pool.give_back(std::move(one));
}

TEST(SparePool, KeepsWhatWasNeededOfLateAndFreesTheRest) {
  Pool pool = filled(300);
  EXPECT_EQ(pool.trim(), 0U) << "all of them came since the last time";
  use(pool, 100);
  EXPECT_EQ(pool.trim(), 200 - Pool::kSparesMin);
  use(pool, 100);
  EXPECT_EQ(pool.trim(), 0U) << "and steady use frees nothing";
  EXPECT_EQ(pool.trim(), 100U);
  EXPECT_EQ(pool.size(), Pool::kSparesMin);
  EXPECT_EQ(pool.trim(), 0U);
  EXPECT_FALSE(pool.has_surplus());
}

TEST(SparePool, IsBounded) {
  Pool pool = filled(Pool::kSparesMax + 10);
  EXPECT_EQ(pool.size(), Pool::kSparesMax);
  EXPECT_TRUE(pool.has_surplus());
  pool.clear();
  EXPECT_EQ(pool.take(), nullptr);
  EXPECT_EQ(pool.trim(), 0U);
}

}  // namespace
}  // namespace sluice::gateway
