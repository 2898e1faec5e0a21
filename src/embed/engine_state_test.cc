#include "embed/engine_state.h"

#include "config/diagnostics.h"
#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace sluice::embed {
namespace {

using namespace std::chrono_literals;

class EngineStateTest : public ::testing::Test {
 protected:
  class ManualClock final : public Clock {
   public:
    Now now() const noexcept override { return now_; }
    Now now_{.mono = MonoTime{1000h}, .wall_offset = std::chrono::seconds{1'700'000'000}};
  };

  static EngineConfiguration read(std::string_view text) {
    config::Diagnostics diagnostics;
    EngineConfiguration configuration = read_engine_configuration(text, "test.yaml", diagnostics);
    EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
    return configuration;
  }
  std::unique_ptr<EngineState> open(const std::string& text) {
    config::Diagnostics diagnostics;
    auto state = EngineState::open(read(text), clock_, diagnostics);
    EXPECT_NE(state, nullptr) << diagnostics.text();
    state_ = state.get();
    return state;
  }
  int passed(WorkerEngine& worker, int requests, std::string_view ip = "192.0.2.1") {
    int count = 0;
    engine::Op op;
    worker.use(state_->content());
    for (int i = 0; i < requests; ++i) {
      const RequestView request{
          .method = "GET", .host = "a", .target = "/", .peer = *IpAddress::parse(ip)};
      (void)worker.decider().decide(op, request, clock_.now());
      count += op.action == engine::Action::pass ? 1 : 0;
      worker.decider().settle(op, nullptr, clock_.now());
    }
    return count;
  }
  static engine::Subject subject(std::string_view text) {
    return engine::Subject::parse(text).value();
  }

  ManualClock clock_;
  testing::TempFolder folder_;
  EngineState* state_ = nullptr;  // the one that was opened last
};

constexpr const char* kRules = "rules: [{name: all, per: [ip], limit: 5/1h}]\n";

TEST_F(EngineStateTest, DecidesByTheRulesOfTheFile) {
  const auto state = open(kRules);
  WorkerEngine worker{*state, 1};
  EXPECT_EQ(passed(worker, 10), 5);
}

TEST_F(EngineStateTest, ReplacesRulesAndKeepsCounts) {
  const auto state = open(kRules);
  WorkerEngine worker{*state, 1};
  EXPECT_EQ(passed(worker, 3), 3);
  config::Diagnostics diagnostics;
  ASSERT_TRUE(state->replace(read("rules: [{name: all, per: [ip], limit: 7/1h}]\n"), diagnostics));
  EXPECT_EQ(passed(worker, 10), 4);
}

// A file that clients are known by may be half written while rules change.
TEST_F(EngineStateTest, ReplacesRulesAloneAndKeepsTheRest) {
  const std::string keys = folder_.file("keys.yaml");
  std::ofstream{keys} << "keys: []\n";
  const auto state = open(std::string{kRules} + "lists: {allow: [ip=10.0.0.0/8]}\nclients: " +
                          "{api_keys: {file: " + keys + "}}\n");
  ASSERT_TRUE(state->deny({.subject = subject("ip=192.0.2.9")}));
  std::filesystem::remove(keys);
  WorkerEngine worker{*state, 1};
  EXPECT_EQ(passed(worker, 3), 3);
  config::Diagnostics diagnostics;
  const EngineConfiguration other = read("rules: [{name: all, per: [ip], limit: 7/1h}]\n");
  ASSERT_TRUE(state->replace_rules(other, diagnostics)) << diagnostics.text();
  EXPECT_EQ(passed(worker, 10), 4);
  EXPECT_EQ(passed(worker, 20, "10.1.2.3"), 20);
  EXPECT_EQ(passed(worker, 20, "192.0.2.9"), 0);
}

TEST_F(EngineStateTest, KeepsWhatItHasWhenTheNewOneIsWrong) {
  const auto state = open(kRules);
  WorkerEngine worker{*state, 1};
  const auto before = state->content().snapshot;
  config::Diagnostics diagnostics;
  const EngineConfiguration wrong =
      read("rules: [{name: all, limit: 9/1h}]\nclients: {api_keys: {file: no-such-file.yaml}}\n");
  EXPECT_FALSE(state->replace(wrong, diagnostics));
  EXPECT_THAT(diagnostics.text(), ::testing::HasSubstr("no-such-file.yaml"));
  EXPECT_EQ(state->content().snapshot, before);
  EXPECT_EQ(passed(worker, 10), 5);
}

TEST_F(EngineStateTest, ReadsListsAndOverrides) {
  const auto state =
      open(std::string{kRules} +
           "lists:\n"
           "  allow: [ip=10.0.0.0/8]\n"
           "  deny: [{subject: ip=203.0.113.0/24, expires: 2099-01-01T00:00:00Z}]\n"
           "overrides: [{subject: ip=198.51.100.1, multiplier: 2, note: a good customer}]\n");
  WorkerEngine worker{*state, 1};
  EXPECT_EQ(passed(worker, 20, "10.1.2.3"), 20);
  EXPECT_EQ(passed(worker, 20, "203.0.113.9"), 0);
  EXPECT_EQ(passed(worker, 20, "198.51.100.1"), 10);
  EXPECT_EQ(passed(worker, 20, "198.51.100.2"), 5);
}

TEST_F(EngineStateTest, IsEditedAtRunTime) {
  const auto state = open(kRules);
  WorkerEngine worker{*state, 1};
  EXPECT_EQ(passed(worker, 10), 5);
  ASSERT_TRUE(state->multiply({.subject = subject("ip=192.0.2.1"), .permille = 3000}));
  EXPECT_EQ(passed(worker, 20), 10);
  ASSERT_TRUE(
      state->deny({.subject = subject("ip=192.0.2.2"), .expires = clock_.now().wall() + 1h}));
  EXPECT_EQ(passed(worker, 1, "192.0.2.2"), 0);
  EXPECT_EQ(state->exceptions().overrides.size(), 1U);
  EXPECT_EQ(state->exceptions().deny.size(), 1U);

  // An edit of the file leaves that alone.
  config::Diagnostics diagnostics;
  ASSERT_TRUE(state->replace(read(kRules), diagnostics));
  EXPECT_EQ(passed(worker, 1, "192.0.2.2"), 0);
  EXPECT_TRUE(state->remove_denied(subject("ip=192.0.2.2")));
  EXPECT_FALSE(state->remove_denied(subject("ip=192.0.2.2")));
  EXPECT_EQ(passed(worker, 1, "192.0.2.2"), 1);
}

// What was added for somebody stands before what the file says of them, and no longer than it
// holds: nobody edits anything when its time has come.
TEST_F(EngineStateTest, TheFileHoldsAgainWhenWhatWasAddedHasEnded) {
  const auto state = open(std::string{kRules} +
                          "lists: {allow: [ip=192.0.2.1], deny: [ip=192.0.2.2]}\n"
                          "overrides: [{subject: ip=192.0.2.3, multiplier: 2}]\n");
  WorkerEngine worker{*state, 1};
  const WallTime until = clock_.now().wall() + 30min;
  ASSERT_TRUE(state->allow({.subject = subject("ip=192.0.2.1"), .expires = until, .note = "mine"}));
  ASSERT_TRUE(state->deny({.subject = subject("ip=192.0.2.2"), .expires = until, .note = "mine"}));
  ASSERT_TRUE(
      state->multiply({.subject = subject("ip=192.0.2.3"), .permille = 3000, .expires = until}));
  EXPECT_EQ(passed(worker, 20, "192.0.2.1"), 20);
  EXPECT_EQ(passed(worker, 20, "192.0.2.2"), 0);
  EXPECT_EQ(passed(worker, 20, "192.0.2.3"), 15) << "the added one stands before the file's";
  ExceptionsConfig shown = state->exceptions();
  ASSERT_EQ(shown.deny.size(), 1U) << "only what holds is shown";
  EXPECT_EQ(shown.deny[0].note, "mine");
  ASSERT_EQ(shown.overrides.size(), 1U);
  EXPECT_EQ(shown.overrides[0].permille, 3000U);

  clock_.now_.mono += 2h;
  EXPECT_EQ(passed(worker, 20, "192.0.2.1"), 20);
  EXPECT_EQ(passed(worker, 20, "192.0.2.2"), 0);
  EXPECT_EQ(passed(worker, 20, "192.0.2.3"), 10);
  shown = state->exceptions();
  EXPECT_EQ(shown.allow.size(), 1U);
  ASSERT_EQ(shown.deny.size(), 1U);
  EXPECT_EQ(shown.deny[0].note, "");
  ASSERT_EQ(shown.overrides.size(), 1U);
  EXPECT_EQ(shown.overrides[0].permille, 2000U);
}

TEST_F(EngineStateTest, TheFileHoldsAgainWhenWhatWasAddedIsRemoved) {
  const auto state = open(std::string{kRules} +
                          "lists: {deny: [ip=192.0.2.2]}\n"
                          "overrides: [{subject: ip=192.0.2.3, multiplier: 2}]\n");
  WorkerEngine worker{*state, 1};
  ASSERT_TRUE(state->deny({.subject = subject("ip=192.0.2.2")}));
  ASSERT_TRUE(state->multiply({.subject = subject("ip=192.0.2.3"), .permille = 3000}));
  EXPECT_TRUE(state->remove_denied(subject("ip=192.0.2.2")));
  EXPECT_TRUE(state->remove_override(subject("ip=192.0.2.3")));
  EXPECT_EQ(passed(worker, 20, "192.0.2.2"), 0);
  EXPECT_EQ(passed(worker, 20, "192.0.2.3"), 10);
  EXPECT_FALSE(state->remove_denied(subject("ip=192.0.2.2"))) << "the file's is not removed here";
}

TEST_F(EngineStateTest, ForgetsWhatHasEnded) {
  const auto state = open(kRules);
  ASSERT_TRUE(
      state->allow({.subject = subject("ip=192.0.2.1"), .expires = clock_.now().wall() + 1h}));
  EXPECT_EQ(state->exceptions().allow.size(), 1U);
  clock_.now_.mono += 1h;
  EXPECT_EQ(state->exceptions().allow.size(), 0U);
}

// For good, so that those who list and list again do not make each edit longer: it would come back
// when the clock does.
TEST_F(EngineStateTest, KeepsNothingThatHadEndedAtAnEdit) {
  const auto state = open(kRules);
  const Now start = clock_.now_;
  for (int i = 0; i < 100; ++i) {
    const std::string who = "ip=203.0.113." + std::to_string(i);
    ASSERT_TRUE(state->deny({.subject = subject(who), .expires = clock_.now().wall() + 1h}));
    ASSERT_TRUE(state->multiply(
        {.subject = subject(who), .permille = 2000, .expires = clock_.now().wall() + 1h}));
    clock_.now_.mono += 1h;
  }
  ASSERT_TRUE(state->deny({.subject = subject("ip=192.0.2.1"), .expires = {}}));
  clock_.now_ = start;
  EXPECT_EQ(state->exceptions().deny.size(), 1U);
  EXPECT_EQ(state->exceptions().overrides.size(), 0U);
}

// Lists are no part of the rules: an edit of them leaves the work of compiling alone, and workers
// keep their place in the rules.
TEST_F(EngineStateTest, CompilesNothingForAnEditOfLists) {
  const auto state = open(kRules);
  const auto snapshot = state->content().snapshot;
  const auto lists = state->content().lists;
  ASSERT_TRUE(state->deny({.subject = subject("ip=192.0.2.1"), .expires = {}}));
  ASSERT_TRUE(state->allow({.subject = subject("ip=192.0.2.2"), .expires = {}}));
  ASSERT_TRUE(state->remove_denied(subject("ip=192.0.2.1")));
  EXPECT_EQ(state->content().snapshot, snapshot);
  EXPECT_NE(state->content().lists, lists);
  ASSERT_TRUE(state->multiply({.subject = subject("ip=192.0.2.1"), .permille = 2000}));
  EXPECT_NE(state->content().snapshot, snapshot);
  EXPECT_EQ(state->content().lists->allow().size(), 1U) << "lists stay as they were";
}

TEST_F(EngineStateTest, RefusesAnOverrideThatNoLimitCanHave) {
  const auto state = open("rules: [{name: all, per: [ip], limit: 500000000/1s}]\n");
  const auto before = state->content().snapshot;
  const auto added = state->multiply({.subject = subject("ip=192.0.2.1"), .permille = 1'000'000});
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().text(), ::testing::HasSubstr("all"));
  EXPECT_EQ(state->content().snapshot, before);
  EXPECT_TRUE(state->exceptions().overrides.empty());
}

// Blocks and their labels survive a restart, and an operator may end them.
TEST_F(EngineStateTest, ListsAndLiftsBlocksAcrossARestart) {
  const std::string text =
      "state: {memory: 4MiB, file: " + folder_.file("state") +
      "}\nrules: [{name: login, per: [ip], limit: 2/1h, block: {duration: 1d}}]\n";
  {
    const auto state = open(text);
    WorkerEngine worker{*state, 1};
    EXPECT_EQ(passed(worker, 5), 2);
  }
  clock_.now_.mono += 2h;
  const auto state = open(text);
  WorkerEngine worker{*state, 1};
  EXPECT_EQ(passed(worker, 5), 0) << "its two requests are back, but it is blocked";
  ASSERT_EQ(state->blocks().size(), 1U);
  EXPECT_EQ(state->blocks()[0].rule, "login");
  EXPECT_EQ(state->blocks()[0].label, "ip=192.0.2.1");
  EXPECT_TRUE(state->unblock(state->blocks()[0].block));
  EXPECT_TRUE(state->blocks().empty());
  EXPECT_EQ(passed(worker, 5), 2);
  EXPECT_FALSE(state->unblock(12345));
}

// ---- trees of envoyproxy/ratelimit ------------------------------------------------------------

// New trees take over what the old ones have counted; bad ones change nothing.
TEST_F(EngineStateTest, AnswersEnvoyByTheTreesOfTheFile) {
  std::filesystem::create_directory(folder_.file("trees"));
  const auto write = [&](std::string_view amount) {
    std::ofstream{folder_.file("trees/a.yaml")}
        << "domain: a\ndescriptors: [{key: k, rate_limit: {unit: year, requests_per_unit: "
        << amount << "}}]\n";
  };
  write("3");
  const std::string text = "rules_from: {envoy: " + folder_.file("trees") + "}\n";
  const auto state = open(text);
  ASSERT_NE(state, nullptr);
  WorkerEngine worker{*state, 1};
  const DescriptorEntry entry{"k", "v"};
  const engine::EnvoyDescriptor descriptor{.entries = {&entry, 1}, .limit = {}, .hits_addend = {}};
  const auto left = [&] {
    worker.use(state->content());
    engine::EnvoyOp op;
    (void)worker.envoy().should_rate_limit(
        op, {.domain = "a", .descriptors = {&descriptor, 1}, .hits_addend = 1}, clock_.now());
    EXPECT_TRUE(op.result);
    return op.response.statuses()[0].limit_remaining;
  };
  EXPECT_EQ(left(), 2U);
  config::Diagnostics diagnostics;
  write("9");
  EXPECT_TRUE(state->replace(read(text), diagnostics)) << diagnostics.text();
  EXPECT_EQ(left(), 7U);
  write("none");
  EXPECT_FALSE(state->replace(read(text), diagnostics));
  EXPECT_EQ(left(), 6U);
}

}  // namespace
}  // namespace sluice::embed
