#include "base/published.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sluice {
namespace {

TEST(Published, HasNothingBeforeTheFirst) {
  const Published<int> published;
  EXPECT_EQ(published.version(), 0U);
  EXPECT_EQ(published.get(), nullptr);
}

TEST(Published, GivesTheNewestAndANewNumber) {
  Published<int> published;
  published.publish(std::make_shared<const int>(1));
  EXPECT_EQ(published.version(), 1U);
  EXPECT_EQ(*published.get(), 1);
  published.publish(std::make_shared<const int>(2));
  EXPECT_EQ(published.version(), 2U);
  EXPECT_EQ(*published.get(), 2);
}

// A user that has not looked again keeps what it has.
TEST(Published, WhatHeldBeforeLivesWhileItIsUsed) {
  Published<int> published;
  published.publish(std::make_shared<const int>(1));
  const std::shared_ptr<const int> used = published.get();
  published.publish(std::make_shared<const int>(2));
  EXPECT_EQ(*used, 1);
  EXPECT_EQ(used.use_count(), 1);
}

// Users that compare version numbers end with the last value, and never see an older one again.
TEST(Published, ReachesEveryThreadInOrder) {
  constexpr int kLast = 2000;
  Published<int> published;
  std::atomic<int> mistakes{0};
  std::vector<std::jthread> users;
  for (int i = 0; i < 3; ++i) {
    users.emplace_back([&] {
      std::uint64_t seen = 0;
      int before = 0;
      while (before != kLast) {
        const std::uint64_t version = published.version();
        if (version == seen) continue;
        seen = version;
        const int value = *published.get();
        if (value < before) ++mistakes;
        before = value;
      }
    });
  }
  for (int i = 1; i <= kLast; ++i) published.publish(std::make_shared<const int>(i));
  users.clear();
  EXPECT_EQ(mistakes, 0);
}

}  // namespace
}  // namespace sluice
