#include "frontend/gateway/connection_counts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace sluice::gateway {
namespace {

IpAddress address(const char* text) { return IpAddress::parse(text).value(); }

TEST(ConnectionCounts, HoldEachAddressToTheMaximum) {
  ConnectionCounts counts;
  const IpAddress ann = address("192.0.2.1");
  EXPECT_TRUE(counts.add(ann, 2));
  EXPECT_TRUE(counts.add(ann, 2));
  EXPECT_FALSE(counts.add(ann, 2));
  EXPECT_EQ(counts.of(ann), 2U) << "what was rejected is not counted";
  EXPECT_TRUE(counts.add(address("192.0.2.2"), 2)) << "another address";
  counts.remove(ann);
  EXPECT_TRUE(counts.add(ann, 2));
  EXPECT_TRUE(counts.add(ann, 0)) << "no maximum";
  EXPECT_EQ(counts.of(ann), 3U);
}

TEST(ConnectionCounts, CountIpv6ByItsNetwork) {
  ConnectionCounts counts;
  EXPECT_TRUE(counts.add(address("2001:db8:0:1::1"), 1));
  EXPECT_FALSE(counts.add(address("2001:db8:0:1:ffff::2"), 1));
  EXPECT_TRUE(counts.add(address("2001:db8:0:2::1"), 1));
  EXPECT_EQ(counts.of(address("2001:db8:0:1:2:3:4:5")), 1U);
}

// Else a scan by many addresses would take memory for good.
TEST(ConnectionCounts, ForgetAddressesWithoutConnections) {
  ConnectionCounts counts;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(counts.add(IpAddress::v4(0x0a000000 + i), 1));
  }
  EXPECT_EQ(counts.addresses(), 1000U);
  for (std::uint32_t i = 0; i < 1000; ++i) counts.remove(IpAddress::v4(0x0a000000 + i));
  EXPECT_EQ(counts.addresses(), 0U);
}

// Whatever the threads do at once, the open connections of an address never exceed the maximum.
TEST(ConnectionCounts, HoldForAllThreadsTogether) {
  constexpr std::uint32_t kMost = 3;
  constexpr int kThreads = 4;
  ConnectionCounts counts;
  const IpAddress ann = address("192.0.2.1");
  std::atomic<std::uint32_t> open{0};
  std::atomic<std::uint32_t> most_seen{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20'000; ++n) {
        if (!counts.add(ann, kMost)) continue;
        const std::uint32_t now = open.fetch_add(1) + 1;
        std::uint32_t seen = most_seen.load();
        while (now > seen && !most_seen.compare_exchange_weak(seen, now)) {
        }
        open.fetch_sub(1);
        counts.remove(ann);
      }
    });
  }
  threads.clear();
  EXPECT_GE(most_seen.load(), 1U);
  EXPECT_LE(most_seen.load(), kMost);
  EXPECT_EQ(counts.of(ann), 0U);
  EXPECT_EQ(counts.addresses(), 0U);
}

}  // namespace
}  // namespace sluice::gateway
