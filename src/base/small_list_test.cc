#include "base/small_list.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sluice {
namespace {

TEST(SmallList, KeepsItsItemsWhenItGrows) {
  SmallList<int, 2> list;
  for (int i = 0; i < 100; ++i) {
    list.push_back(i);
    ASSERT_EQ(list.size(), static_cast<std::size_t>(i) + 1);
    ASSERT_EQ(std::accumulate(list.begin(), list.end(), 0), i * (i + 1) / 2);
  }
}

TEST(SmallList, IsUsableAgainWhenCleared) {
  SmallList<int, 2> list;
  for (int i = 0; i < 5; ++i) list.push_back(i);
  list.clear();
  EXPECT_TRUE(list.empty());
  list.push_back(7);
  list.push_back(8);
  list.push_back(9);
  EXPECT_EQ(list[0], 7);
  EXPECT_EQ(list.all().back(), 9);
  list.shorten(1);
  EXPECT_EQ(list.size(), 1U);
  EXPECT_EQ(list.all().back(), 7);
}

}  // namespace
}  // namespace sluice
