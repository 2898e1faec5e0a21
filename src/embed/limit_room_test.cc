#include "embed/limit_room.h"

#include "config/diagnostics.h"
#include "embed/engine_state.h"
#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::embed {
namespace {

using namespace std::chrono_literals;

// What is said to be needed before the table is there is compared with what the table then holds.
class LimitRoomTest : public ::testing::Test {
 protected:
  class FixedClock final : public Clock {
   public:
    Now now() const noexcept override {
      return {.mono = MonoTime{1000h}, .wall_offset = std::chrono::seconds{1'700'000'000}};
    }
  };

  static EngineConfiguration read(std::string_view text) {
    config::Diagnostics diagnostics;
    EngineConfiguration configuration = read_engine_configuration(text, "test.yaml", diagnostics);
    EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
    return configuration;
  }
  [[nodiscard]] std::size_t told(std::string_view text) const {
    return distinct_limits(read(text), clock_.now()).value();
  }
  [[nodiscard]] std::size_t held(std::string_view text) const {
    config::Diagnostics diagnostics;
    const auto state = EngineState::open(read(text), clock_, diagnostics);
    EXPECT_NE(state, nullptr) << diagnostics.text();
    return state == nullptr ? 0 : state->table().status().limits_used;
  }
  void expect_to_need(std::size_t limits, std::string_view text) const {
    EXPECT_EQ(told(text), limits) << text;
    EXPECT_EQ(held(text), limits) << text;
  }
  static std::string rule(std::string_view rest) {
    return "rules: [{name: a, per: [ip], " + std::string{rest} + "}]\n";
  }

  FixedClock clock_;
  testing::TempFolder folder_;
};

// Two limits that differ in one option are two.
TEST_F(LimitRoomTest, TellsEveryOptionOfALimitApart) {
  const auto expect_two = [this](const std::string& one, const std::string& other) {
    expect_to_need(2,
                   "rules: [{name: a, limit: {" + one + "}}, {name: b, limit: {" + other + "}}]\n");
  };
  for (const char* other :
       {"rate: 101/1h", "rate: 100/2h", "rate: 100/1h, burst: 7", "rate: 100/1h, refill: interval",
        "rate: 100/1h, algorithm: gcra", "rate: 100/1h, algorithm: leaky_bucket",
        "rate: 100/1h, algorithm: sliding_log", "rate: 100/1h, algorithm: sliding_counter",
        "rate: 100/1h, algorithm: fixed_window", "rate: 100/day", "max_concurrent: 100"}) {
    expect_two("rate: 100/1h", other);
  }
  const std::string window = "rate: 100/1h, algorithm: fixed_window";
  const std::string buckets = "rate: 100/1h, algorithm: sliding_buckets";
  expect_two(window, window + ", align: first_request");
  expect_two(buckets, buckets + ", bucket_width: 10m");
  expect_two("rate: 100/day", "rate: 100/month");
  expect_two("rate: 100/day", "rate: 100/day, timezone: Europe/Berlin");
  expect_two("max_concurrent: 5", "max_concurrent: 5, slot_ttl: 5m");
}

TEST_F(LimitRoomTest, CountsLimitsThatSayTheSameOnce) {
  expect_to_need(1, "rules: [{name: a, limit: 5/1h}, {name: b, limit: 5/60m}]\n");
  expect_to_need(2,
                 "rules: [{name: a, limit: 5/1h}, {name: b, limit: 5/1h, "
                 "count_rejected: true}]\n");
}

TEST_F(LimitRoomTest, CountsWhatQueuesTiersAndBlocksNeed) {
  expect_to_need(2,
                 "rules: [{name: a, limit: {rate: 5/1h, algorithm: leaky_bucket}},"
                 " {name: b, limit: {rate: 5/1h, algorithm: leaky_bucket},"
                 " action: {queue: {max_delay: 2s, max_queued: 3}}}]\n");
  expect_to_need(4, rule("limit: 5/1h, tiers: {by: client.tier, "
                         "values: {paid: [6/1h, 7/2h], gold: 8/1h, silver: 5/1h}}"));
  expect_to_need(3, rule("limit: 5/1h, block: {duration: 1d, threshold: 3}"));
  expect_to_need(2, rule("limit: 5/1h, block: {duration: 1d, threshold: 1}"));
}

// An amount that a request brings has a number only while there is such a request.
TEST_F(LimitRoomTest, CountsTheWrittenAmountOfALimitThatRequestsChange) {
  expect_to_need(1, rule("limit: {rate: 5/1h, from: {claim: rps, max: 1000}}"));
}

// An override's limit is none of a rule's, even where their numbers are the same.
TEST_F(LimitRoomTest, CountsOverridesThatHold) {
  const std::string tiers =
      rule("limit: 5/1h, tiers: {by: client.tier, values: {paid: [6/1h, 7/2h]}}");
  const auto with = [&](std::string_view overrides) {
    return tiers + "overrides: [" + std::string{overrides} + "]\n";
  };
  expect_to_need(6, with("{subject: ip=192.0.2.1, multiplier: 2}"));
  expect_to_need(6, with("{subject: ip=192.0.2.1, multiplier: 1}"));
  expect_to_need(6, with("{subject: ip=192.0.2.1, multiplier: 2}, "
                         "{subject: ip=192.0.2.2, multiplier: 2}"));
  expect_to_need(9, with("{subject: ip=192.0.2.1, multiplier: 2}, "
                         "{subject: ip=192.0.2.2, multiplier: 3}"));
  expect_to_need(3, with("{subject: user=ann, multiplier: 2}"));
  expect_to_need(3, with("{subject: ip=192.0.2.1, multiplier: 2, "
                         "expires: 2001-01-01T00:00:00Z}"));
  expect_to_need(5, rule("limit: 5/1h, block: {duration: 1d, threshold: 3}") +
                        "overrides: [{subject: ip=192.0.2.1, multiplier: 2},"
                        " {subject: ip=192.0.2.2, multiplier: 3}]\n");
}

TEST_F(LimitRoomTest, CountsTheCountersOfEnvoyTrees) {
  std::filesystem::create_directory(folder_.file("trees"));
  std::ofstream{folder_.file("trees/a.yaml")}
      << "domain: a\ndescriptors: [{key: k, rate_limit: {unit: year, requests_per_unit: 3}}]\n";
  expect_to_need(7, "rules_from: {envoy: " + folder_.file("trees") + "}\n");
}

TEST_F(LimitRoomTest, SaysHowMuchMemoryWouldDo) {
  std::string text = "state: {memory: 4MiB}\nrules:\n";
  const auto add = [&](int i) {
    const std::string number = std::to_string(i + 1);
    text += "  - {name: r" + number + ", limit: " + number + "/1h}\n";
  };
  for (int i = 0; i < 1092; ++i) add(i);
  EXPECT_TRUE(check_room(read(text), clock_.now()));
  EXPECT_EQ(held(text), 1092U);
  add(1092);
  const auto room = check_room(read(text), clock_.now());
  ASSERT_FALSE(room);
  EXPECT_THAT(room.error().text(), ::testing::HasSubstr("1093 different limits"));
  EXPECT_THAT(room.error().text(), ::testing::HasSubstr("state: {memory: 5MiB}"));
}

// A server would not start with it, however much memory it has.
TEST_F(LimitRoomTest, ReportsAMultiplierThatIsTooLargeForALimit) {
  const auto room = check_room(read("rules: [{name: all, per: [ip], limit: 500000000/1s}]\n"
                                    "overrides: [{subject: ip=192.0.2.1, multiplier: 1000}]\n"),
                               clock_.now());
  ASSERT_FALSE(room);
  EXPECT_THAT(room.error().text(), ::testing::HasSubstr("override ip=192.0.2.1"));
}

}  // namespace
}  // namespace sluice::embed
