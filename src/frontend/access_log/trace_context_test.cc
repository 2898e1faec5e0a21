#include "frontend/access_log/trace_context.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::frontend {
namespace {

constexpr std::string_view kGood = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

std::string with(std::size_t place, char c) {
  std::string text{kGood};
  text[place] = c;
  return text;
}

TEST(TraceContext, ReadsATraceparent) {
  const auto parent = parse_traceparent(kGood);
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(parent->parent_id, "00f067aa0ba902b7");
}

// A version that nobody knows yet may say more, but says the same first.
TEST(TraceContext, ReadsLaterVersionsAsFarAsTheyAreKnown) {
  EXPECT_TRUE(parse_traceparent("cc" + std::string{kGood.substr(2)}));
  EXPECT_TRUE(parse_traceparent("cc" + std::string{kGood.substr(2)} + "-what-comes"));
  EXPECT_FALSE(parse_traceparent("cc" + std::string{kGood.substr(2)} + ".what-comes"));
  EXPECT_FALSE(parse_traceparent("ff" + std::string{kGood.substr(2)}));
}

TEST(TraceContext, RefusesWhatIsMalformed) {
  for (std::size_t place = 0; place < kGood.size(); ++place) {
    EXPECT_FALSE(parse_traceparent(with(place, 'X'))) << place;
    EXPECT_FALSE(parse_traceparent(kGood.substr(0, place))) << place;
  }
  EXPECT_FALSE(parse_traceparent(with(4, 'B'))) << "only small letters";
  EXPECT_FALSE(parse_traceparent(std::string{kGood} + "-"));
  EXPECT_FALSE(parse_traceparent("00-00000000000000000000000000000000-00f067aa0ba902b7-01"));
  EXPECT_FALSE(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"));
}

TEST(TraceContext, OfSeveralHeadersNoneCounts) {
  const std::vector<HeaderView> one{{"Accept", "*/*"}, {"TraceParent", kGood}};
  EXPECT_EQ(trace_id_of(one), "4bf92f3577b34da6a3ce929d0e0e4736");
  const std::vector<HeaderView> two{{"traceparent", kGood}, {"traceparent", kGood}};
  EXPECT_EQ(trace_id_of(two), "");
  const std::vector<HeaderView> mixed{{"traceparent", kGood}, {"traceparent", "no"}};
  EXPECT_EQ(trace_id_of(mixed), "");
  EXPECT_EQ(trace_id_of({}), "");
}

TEST(TraceContext, StartsWhatItReads) {
  const TraceParentText text =
      write_traceparent({.high = 1, .low = 0xfedcba9876543210U, .parent = 0xabU, .sampled = false});
  const std::string_view written{text.data(), text.size()};
  EXPECT_EQ(written, "00-0000000000000001fedcba9876543210-00000000000000ab-00");
  EXPECT_TRUE(parse_traceparent(written));
  const TraceParentText sampled = write_traceparent({.high = 0, .low = 1, .parent = 1});
  EXPECT_TRUE(std::string_view(sampled.data(), sampled.size()).ends_with("-01"));
}

}  // namespace
}  // namespace sluice::frontend
