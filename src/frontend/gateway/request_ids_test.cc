#include "frontend/gateway/request_ids.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <span>
#include <string>

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;

std::string next(RequestIds& ids, WallTime now = WallTime{255ns}) {
  std::string id(RequestIds::kBytes, ' ');
  ids.write_next(now, std::span<char, RequestIds::kBytes>{id});
  return id;
}

TEST(RequestIds, BeginWithTheInstant) {
  RequestIds ids{{1, 2}};
  EXPECT_EQ(next(ids).substr(0, 16), "00000000000000ff");
  EXPECT_EQ(next(ids).find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(RequestIds, AreUnlikeEachOther) {
  RequestIds ids{{1, 2}};
  std::set<std::string> seen;
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(seen.insert(next(ids)).second) << i;
}

// The same count says nothing under another secret: without it the next one cannot be told.
TEST(RequestIds, DependOnASecret) {
  RequestIds one{{1, 2}};
  RequestIds other{{1, 3}};
  RequestIds same{{1, 2}};
  for (int i = 0; i < 100; ++i) {
    const std::string id = next(one);
    EXPECT_NE(id, next(other));
    EXPECT_EQ(id, next(same));
  }
}

}  // namespace
}  // namespace sluice::gateway
