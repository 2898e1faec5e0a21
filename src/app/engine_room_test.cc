#include "app/engine_room.h"

#include "config/diagnostics.h"
#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace sluice::app {
namespace {

using namespace std::chrono_literals;

class RoomTest : public ::testing::Test {
 protected:
  class ManualClock final : public Clock {
   public:
    Now now() const noexcept override { return now_; }
    Now now_{.mono = MonoTime{1000h}, .wall_offset = std::chrono::seconds{1'700'000'000}};
  };

  static Configuration read(std::string_view text) {
    config::Diagnostics diagnostics;
    Configuration configuration = read_configuration(text, "test.yaml", diagnostics);
    EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
    return configuration;
  }
  std::unique_ptr<EngineRoom> open(const std::string& text) {
    config::Diagnostics diagnostics;
    auto room = EngineRoom::open(read(text), clock_, diagnostics);
    EXPECT_NE(room, nullptr) << diagnostics.text();
    return room;
  }
  int passed(RoomWorker& worker, int requests, std::string_view ip = "192.0.2.1") {
    int count = 0;
    engine::Op op;
    for (int i = 0; i < requests; ++i) {
      worker.refresh();
      const RequestView request{
          .method = "GET", .host = "a", .target = "/", .peer = *IpAddress::parse(ip)};
      (void)worker.worker().decide(op, request, clock_.now());
      count += op.action == engine::Action::pass ? 1 : 0;
      worker.worker().settle(op, nullptr, clock_.now());
    }
    return count;
  }
  static engine::Subject subject(std::string_view text) {
    return engine::Subject::parse(text).value();
  }

  ManualClock clock_;
  testing::TempFolder folder_;
};

constexpr const char* kRules = "rules: [{name: all, per: [ip], limit: 5/1h}]\n";

TEST_F(RoomTest, DecidesByTheRulesOfTheFile) {
  const auto room = open(kRules);
  RoomWorker worker{*room, 1};
  EXPECT_EQ(passed(worker, 10), 5);
}

TEST_F(RoomTest, ReplacesRulesAndKeepsCounts) {
  const auto room = open(kRules);
  RoomWorker worker{*room, 1};
  EXPECT_EQ(passed(worker, 3), 3);
  config::Diagnostics diagnostics;
  ASSERT_TRUE(room->replace(read("rules: [{name: all, per: [ip], limit: 7/1h}]\n"), diagnostics));
  EXPECT_EQ(passed(worker, 10), 4);
}

// A file that clients are known by may be half written while rules change.
TEST_F(RoomTest, ReplacesRulesAloneAndKeepsTheRest) {
  const std::string keys = folder_.file("keys.yaml");
  std::ofstream{keys} << "keys: []\n";
  const auto room = open(std::string{kRules} + "lists: {allow: [ip=10.0.0.0/8]}\nclients: " +
                         "{api_keys: {file: " + keys + "}}\n");
  ASSERT_TRUE(room->deny({.subject = subject("ip=192.0.2.9")}));
  std::filesystem::remove(keys);
  RoomWorker worker{*room, 1};
  EXPECT_EQ(passed(worker, 3), 3);
  config::Diagnostics diagnostics;
  const Configuration other = read("rules: [{name: all, per: [ip], limit: 7/1h}]\n");
  ASSERT_TRUE(room->replace_rules(other, diagnostics)) << diagnostics.text();
  EXPECT_EQ(passed(worker, 10), 4);
  EXPECT_EQ(passed(worker, 20, "10.1.2.3"), 20);
  EXPECT_EQ(passed(worker, 20, "192.0.2.9"), 0);
}

TEST_F(RoomTest, KeepsWhatItHasWhenTheNewOneIsWrong) {
  const auto room = open(kRules);
  RoomWorker worker{*room, 1};
  const std::uint64_t version = room->version();
  config::Diagnostics diagnostics;
  const Configuration wrong =
      read("rules: [{name: all, limit: 9/1h}]\nclients: {api_keys: {file: no-such-file.yaml}}\n");
  EXPECT_FALSE(room->replace(wrong, diagnostics));
  EXPECT_THAT(diagnostics.text(), ::testing::HasSubstr("no-such-file.yaml"));
  EXPECT_EQ(room->version(), version);
  EXPECT_EQ(passed(worker, 10), 5);
}

TEST_F(RoomTest, ReadsListsAndOverrides) {
  const auto room =
      open(std::string{kRules} +
           "lists:\n"
           "  allow: [ip=10.0.0.0/8]\n"
           "  deny: [{who: ip=203.0.113.0/24, until: 2099-01-01T00:00:00Z}]\n"
           "overrides: [{who: ip=198.51.100.1, factor: 2x, note: a good customer}]\n");
  RoomWorker worker{*room, 1};
  EXPECT_EQ(passed(worker, 20, "10.1.2.3"), 20);
  EXPECT_EQ(passed(worker, 20, "203.0.113.9"), 0);
  EXPECT_EQ(passed(worker, 20, "198.51.100.1"), 10);
  EXPECT_EQ(passed(worker, 20, "198.51.100.2"), 5);
}

TEST_F(RoomTest, IsEditedAtRunTime) {
  const auto room = open(kRules);
  RoomWorker worker{*room, 1};
  EXPECT_EQ(passed(worker, 10), 5);
  ASSERT_TRUE(room->multiply({.subject = subject("ip=192.0.2.1"), .permille = 3000}));
  EXPECT_EQ(passed(worker, 20), 10);
  ASSERT_TRUE(room->deny({.subject = subject("ip=192.0.2.2"), .until = clock_.now().wall() + 1h}));
  EXPECT_EQ(passed(worker, 1, "192.0.2.2"), 0);
  EXPECT_EQ(room->exceptions().overrides.size(), 1U);
  EXPECT_EQ(room->exceptions().deny.size(), 1U);

  // An edit of the file leaves that alone.
  config::Diagnostics diagnostics;
  ASSERT_TRUE(room->replace(read(kRules), diagnostics));
  EXPECT_EQ(passed(worker, 1, "192.0.2.2"), 0);
  EXPECT_TRUE(room->remove_denied(subject("ip=192.0.2.2")));
  EXPECT_FALSE(room->remove_denied(subject("ip=192.0.2.2")));
  EXPECT_EQ(passed(worker, 1, "192.0.2.2"), 1);
}

// What was added for somebody stands before what the file says of them, and no longer than it
// holds: nobody edits anything when its time has come.
TEST_F(RoomTest, TheFileHoldsAgainWhenWhatWasAddedHasEnded) {
  const auto room = open(std::string{kRules} +
                         "lists: {allow: [ip=192.0.2.1], deny: [ip=192.0.2.2]}\n"
                         "overrides: [{who: ip=192.0.2.3, factor: 2x}]\n");
  RoomWorker worker{*room, 1};
  const WallTime until = clock_.now().wall() + 30min;
  ASSERT_TRUE(room->allow({.subject = subject("ip=192.0.2.1"), .until = until, .note = "mine"}));
  ASSERT_TRUE(room->deny({.subject = subject("ip=192.0.2.2"), .until = until, .note = "mine"}));
  ASSERT_TRUE(
      room->multiply({.subject = subject("ip=192.0.2.3"), .permille = 3000, .until = until}));
  EXPECT_EQ(passed(worker, 20, "192.0.2.1"), 20);
  EXPECT_EQ(passed(worker, 20, "192.0.2.2"), 0);
  EXPECT_EQ(passed(worker, 20, "192.0.2.3"), 15) << "the added one stands before the file's";
  ExceptionsConfig shown = room->exceptions();
  ASSERT_EQ(shown.deny.size(), 1U) << "only what holds is shown";
  EXPECT_EQ(shown.deny[0].note, "mine");
  ASSERT_EQ(shown.overrides.size(), 1U);
  EXPECT_EQ(shown.overrides[0].permille, 3000U);

  clock_.now_.mono += 2h;
  EXPECT_EQ(passed(worker, 20, "192.0.2.1"), 20);
  EXPECT_EQ(passed(worker, 20, "192.0.2.2"), 0);
  EXPECT_EQ(passed(worker, 20, "192.0.2.3"), 10);
  shown = room->exceptions();
  EXPECT_EQ(shown.allow.size(), 1U);
  ASSERT_EQ(shown.deny.size(), 1U);
  EXPECT_EQ(shown.deny[0].note, "");
  ASSERT_EQ(shown.overrides.size(), 1U);
  EXPECT_EQ(shown.overrides[0].permille, 2000U);
}

TEST_F(RoomTest, TheFileHoldsAgainWhenWhatWasAddedIsRemoved) {
  const auto room = open(std::string{kRules} +
                         "lists: {deny: [ip=192.0.2.2]}\n"
                         "overrides: [{who: ip=192.0.2.3, factor: 2x}]\n");
  RoomWorker worker{*room, 1};
  ASSERT_TRUE(room->deny({.subject = subject("ip=192.0.2.2")}));
  ASSERT_TRUE(room->multiply({.subject = subject("ip=192.0.2.3"), .permille = 3000}));
  EXPECT_TRUE(room->remove_denied(subject("ip=192.0.2.2")));
  EXPECT_TRUE(room->remove_override(subject("ip=192.0.2.3")));
  EXPECT_EQ(passed(worker, 20, "192.0.2.2"), 0);
  EXPECT_EQ(passed(worker, 20, "192.0.2.3"), 10);
  EXPECT_FALSE(room->remove_denied(subject("ip=192.0.2.2"))) << "the file's is not removed here";
}

TEST_F(RoomTest, ForgetsWhatHasEnded) {
  const auto room = open(kRules);
  ASSERT_TRUE(room->allow({.subject = subject("ip=192.0.2.1"), .until = clock_.now().wall() + 1h}));
  EXPECT_EQ(room->exceptions().allow.size(), 1U);
  clock_.now_.mono += 1h;
  EXPECT_EQ(room->exceptions().allow.size(), 0U);
}

// For good, so that those who list and list again do not make each edit longer: it would come back
// when the clock does.
TEST_F(RoomTest, KeepsNothingThatHadEndedAtAnEdit) {
  const auto room = open(kRules);
  const Now start = clock_.now_;
  for (int i = 0; i < 100; ++i) {
    const std::string who = "ip=203.0.113." + std::to_string(i);
    ASSERT_TRUE(room->deny({.subject = subject(who), .until = clock_.now().wall() + 1h}));
    ASSERT_TRUE(room->multiply(
        {.subject = subject(who), .permille = 2000, .until = clock_.now().wall() + 1h}));
    clock_.now_.mono += 1h;
  }
  ASSERT_TRUE(room->deny({.subject = subject("ip=192.0.2.1"), .until = {}}));
  clock_.now_ = start;
  EXPECT_EQ(room->exceptions().deny.size(), 1U);
  EXPECT_EQ(room->exceptions().overrides.size(), 0U);
}

// Lists are no part of the rules: an edit of them leaves the work of compiling alone, and workers
// keep their place in the rules.
TEST_F(RoomTest, CompilesNothingForAnEditOfLists) {
  const auto room = open(kRules);
  const auto snapshot = room->content().snapshot;
  const auto lists = room->content().lists;
  ASSERT_TRUE(room->deny({.subject = subject("ip=192.0.2.1"), .until = {}}));
  ASSERT_TRUE(room->allow({.subject = subject("ip=192.0.2.2"), .until = {}}));
  ASSERT_TRUE(room->remove_denied(subject("ip=192.0.2.1")));
  EXPECT_EQ(room->content().snapshot, snapshot);
  EXPECT_NE(room->content().lists, lists);
  ASSERT_TRUE(room->multiply({.subject = subject("ip=192.0.2.1"), .permille = 2000}));
  EXPECT_NE(room->content().snapshot, snapshot);
  EXPECT_EQ(room->content().lists->allow().size(), 1U) << "lists stay as they were";
}

TEST_F(RoomTest, RefusesAnOverrideThatNoLimitCanHave) {
  const auto room = open("rules: [{name: all, per: [ip], limit: 500000000/1s}]\n");
  const std::uint64_t version = room->version();
  const auto added = room->multiply({.subject = subject("ip=192.0.2.1"), .permille = 1'000'000});
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().text(), ::testing::HasSubstr("all"));
  EXPECT_EQ(room->version(), version);
  EXPECT_TRUE(room->exceptions().overrides.empty());
}

// Blocks and their labels survive a restart, and an operator may end them.
TEST_F(RoomTest, ListsAndLiftsBlocksAcrossARestart) {
  const std::string text = "state: {memory: 4MiB, file: " + folder_.file("state") +
                           "}\nrules: [{name: login, per: [ip], limit: 2/1h, block: {for: 1d}}]\n";
  {
    const auto room = open(text);
    RoomWorker worker{*room, 1};
    EXPECT_EQ(passed(worker, 5), 2);
  }
  clock_.now_.mono += 2h;
  const auto room = open(text);
  RoomWorker worker{*room, 1};
  EXPECT_EQ(passed(worker, 5), 0) << "its two requests are back, but it is blocked";
  ASSERT_EQ(room->blocks().size(), 1U);
  EXPECT_EQ(room->blocks()[0].rule, "login");
  EXPECT_EQ(room->blocks()[0].label, "ip=192.0.2.1");
  EXPECT_TRUE(room->unblock(room->blocks()[0].block));
  EXPECT_TRUE(room->blocks().empty());
  EXPECT_EQ(passed(worker, 5), 2);
  EXPECT_FALSE(room->unblock(12345));
}

// ---- trees of envoyproxy/ratelimit ------------------------------------------------------------

// New trees take over what the old ones have counted; bad ones change nothing.
TEST_F(RoomTest, AnswersEnvoyByTheTreesOfTheFile) {
  std::filesystem::create_directory(folder_.file("trees"));
  const auto write = [&](std::string_view amount) {
    std::ofstream{folder_.file("trees/a.yaml")}
        << "domain: a\ndescriptors: [{key: k, rate_limit: {unit: year, requests_per_unit: "
        << amount << "}}]\n";
  };
  write("3");
  const std::string text = "rules_from: {envoy: " + folder_.file("trees") + "}\n";
  const auto room = open(text);
  ASSERT_NE(room, nullptr);
  RoomWorker worker{*room, 1};
  const DescriptorEntry entry{"k", "v"};
  const engine::EnvoyDescriptor descriptor{.entries = {&entry, 1}, .limit = {}, .hits_addend = {}};
  const auto left = [&] {
    worker.refresh();
    engine::EnvoyResponse response;
    const auto answered = worker.envoy().should_rate_limit(
        {.domain = "a", .descriptors = {&descriptor, 1}, .hits_addend = 1}, clock_.now(), response);
    EXPECT_TRUE(answered);
    return response.statuses()[0].limit_remaining;
  };
  EXPECT_EQ(left(), 2U);
  config::Diagnostics diagnostics;
  write("9");
  EXPECT_TRUE(room->replace(read(text), diagnostics)) << diagnostics.text();
  EXPECT_EQ(left(), 7U);
  write("none");
  EXPECT_FALSE(room->replace(read(text), diagnostics));
  EXPECT_EQ(left(), 6U);
}

}  // namespace
}  // namespace sluice::app
