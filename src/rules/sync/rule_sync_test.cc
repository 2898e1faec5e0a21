#include "rules/sync/rule_sync.h"

#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <vector>

namespace sluice::rules {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Holds what the test puts there; empty is out of reach.
class MemorySource final : public RuleSource {
 public:
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] Parsed<Fetched> fetch() override {
    if (throws) throw std::runtime_error{"library trouble"};
    if (text.empty()) return mistake("out of reach", "wait");
    return Fetched{.text = text, .version = "v:" + text, .where = "memory"};
  }

  [[nodiscard]] Parsed<void> watch(const Changed& /*changed*/) override {
    watched = true;
    if (!watch_fails.empty()) return mistake(watch_fails);
    return {};
  }
  void unwatch() noexcept override { watched = false; }
  [[nodiscard]] bool is_being_written() const override { return being_written; }

  std::string text = "good 1";
  bool throws = false;
  bool watched = false;
  bool being_written = false;
  std::string watch_fails;

 private:
  std::string name_ = "memory";
};

// Drives one attempt after the other, without threads. Rules are good if their text says so.
class RuleSyncFrom : public ::testing::Test {
 protected:
  RuleSyncFrom() { restart(); }

  void restart() {
    sync_.reset();  // two at once would share the folder
    sync_ = std::make_unique<RuleSync>(
        source_, [this](const Fetched& fetched) { return accept(fetched); }, clock_,
        RuleSyncOptions{.schedule = {},
                        .seed = 1,
                        .last_good_file = folder_ + "/rules.last-good",
                        .bytes_max = 1000},
        [this](const SyncReport& report) {
          reports_.push_back(std::string{to_string(report.event)} + " " +
                             (report.version.empty() ? report.diagnosis.message : report.version));
        });
    in_force_.clear();
    reports_.clear();
  }

  Parsed<void> accept(const Fetched& fetched) {
    if (fetched.text == "throw") throw std::runtime_error{"parser trouble"};
    if (!fetched.text.starts_with(good_)) return mistake(fetched.where + ": not good", "be good");
    in_force_ = fetched.text;
    ++accept_calls_;
    return {};
  }

  void hold(const std::string& text) { source_.text = text; }
  void sync_after(const std::string& text) {
    hold(text);
    sync();
  }
  // Until two readings in a row are equal, as the thread does.
  void sync() {
    if (!sync_->poll()) (void)sync_->poll();
  }
  void damage_last_good() const {
    std::ofstream{folder_ + "/rules.last-good", std::ios::app} << "damage";
  }

  testing::TempFolder temporary_;
  const std::string folder_ = temporary_.file("state");
  ManualClock clock_{Now{.mono = MonoTime{1h}, .wall_offset = 100h}};
  MemorySource source_;
  std::string good_ = "good";
  std::string in_force_;
  int accept_calls_ = 0;
  std::vector<std::string> reports_;
  std::unique_ptr<RuleSync> sync_;
};

TEST_F(RuleSyncFrom, BeginsWithWhatTheSourceHolds) {
  ASSERT_TRUE(sync_->load());
  EXPECT_EQ(in_force_, "good 1");
  const SyncStatus status = sync_->status();
  EXPECT_EQ(status.source, "memory");
  EXPECT_EQ(status.version, "v:good 1");
  EXPECT_TRUE(status.loaded == WallTime{101h});
  EXPECT_TRUE(status.attempted == WallTime{101h});
  EXPECT_FALSE(status.from_last_good);
  EXPECT_FALSE(status.error.has_value());
  EXPECT_EQ(status.accepted, 1U);
  EXPECT_THAT(reports_, ElementsAre("accepted v:good 1"));
}

TEST_F(RuleSyncFrom, AVersionInForceIsNotAcceptedTwice) {
  ASSERT_TRUE(sync_->load());
  clock_.advance(1h);
  sync();
  sync();
  EXPECT_EQ(accept_calls_, 1);
  const SyncStatus status = sync_->status();
  EXPECT_EQ(status.unchanged, 2U);
  EXPECT_TRUE(status.loaded == WallTime{101h});
  EXPECT_TRUE(status.attempted == WallTime{102h});
  EXPECT_EQ(reports_.size(), 1U);
}

TEST_F(RuleSyncFrom, ANewVersionReplacesTheOld) {
  ASSERT_TRUE(sync_->load());
  clock_.advance(1h);
  sync_after("good 2");
  EXPECT_EQ(in_force_, "good 2");
  EXPECT_TRUE(sync_->status().loaded == WallTime{102h});
  EXPECT_EQ(sync_->status().accepted, 2U);
}

// The interval may end between two parts of a file that is being written.
TEST_F(RuleSyncFrom, WhatAPollFindsIsTakenWhenTwoReadingsAreEqual) {
  ASSERT_TRUE(sync_->load());
  hold("good 2");
  EXPECT_FALSE(sync_->poll()) << "it is read again soon";
  hold("good 2 and more");
  EXPECT_FALSE(sync_->poll());
  EXPECT_EQ(in_force_, "good 1");
  EXPECT_TRUE(sync_->poll());
  EXPECT_EQ(in_force_, "good 2 and more");
  hold("bad");
  EXPECT_FALSE(sync_->poll());
  EXPECT_EQ(sync_->status().rejected, 0U);
  EXPECT_TRUE(sync_->poll());
  EXPECT_EQ(sync_->status().rejected, 1U);
  hold("good 3");
  sync_->sync_now();
  EXPECT_TRUE(sync_->poll()) << "a change that was told of is complete";
  EXPECT_EQ(in_force_, "good 3");
}

TEST_F(RuleSyncFrom, APollDoesNotReadWhatIsBeingWritten) {
  ASSERT_TRUE(sync_->load());
  source_.being_written = true;
  hold("good 2");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(sync_->poll());
  EXPECT_EQ(in_force_, "good 1");
  source_.being_written = false;
  sync_->sync_now();
  EXPECT_TRUE(sync_->poll());
  EXPECT_EQ(in_force_, "good 2");
}

// A reload asks for the rules whatever file has changed.
TEST_F(RuleSyncFrom, NorDoesAPollThatIsAskedForReadWhatIsBeingWritten) {
  ASSERT_TRUE(sync_->load());
  source_.being_written = true;
  hold("good 2, half");
  sync_->sync_now();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(sync_->poll()) << "it is read again soon";
  EXPECT_EQ(in_force_, "good 1");
  EXPECT_EQ(sync_->status().unchanged, 0U) << "nothing was read";
  hold("good 2");
  source_.being_written = false;
  EXPECT_TRUE(sync_->poll()) << "what was asked for is not forgotten";
  EXPECT_EQ(in_force_, "good 2");
}

TEST_F(RuleSyncFrom, ARejectedVersionLeavesTheRulesInForceAndIsToldOnce) {
  ASSERT_TRUE(sync_->load());
  reports_.clear();
  for (int i = 0; i < 3; ++i) sync_after("bad");
  EXPECT_EQ(in_force_, "good 1");
  const SyncStatus status = sync_->status();
  EXPECT_EQ(status.version, "v:good 1");
  EXPECT_EQ(status.rejected, 1U);
  EXPECT_EQ(status.unchanged, 2U);
  EXPECT_EQ(status.rejected_version, "v:bad");
  EXPECT_EQ(status.error.value().text(), "memory: not good; be good");
  EXPECT_THAT(reports_, ElementsAre("rejected v:bad"));
  sync_after("bad again");
  EXPECT_EQ(sync_->status().rejected, 2U);
  EXPECT_EQ(reports_.back(), "rejected v:bad again");
}

TEST_F(RuleSyncFrom, TakingABadChangeBackMendsTheError) {
  ASSERT_TRUE(sync_->load());
  sync_after("bad");
  sync_after("good 1");
  EXPECT_FALSE(sync_->status().error.has_value());
  EXPECT_EQ(sync_->status().rejected_version, "");
  EXPECT_EQ(reports_.back(), "recovered v:good 1");
  EXPECT_EQ(accept_calls_, 1);
}

TEST_F(RuleSyncFrom, AFailureIsToldOnceUntilItIsOver) {
  ASSERT_TRUE(sync_->load());
  reports_.clear();
  hold("");
  EXPECT_FALSE(sync_->poll());
  EXPECT_FALSE(sync_->poll());
  EXPECT_EQ(in_force_, "good 1");
  EXPECT_EQ(sync_->status().failed, 2U);
  EXPECT_EQ(sync_->status().error.value().text(), "out of reach; wait");
  hold("good 1");
  EXPECT_TRUE(sync_->poll());
  EXPECT_FALSE(sync_->status().error.has_value());
  EXPECT_THAT(reports_, ElementsAre("failed out of reach", "recovered v:good 1"));
}

TEST_F(RuleSyncFrom, AFailureDoesNotHideThatTheVersionWasRejected) {
  ASSERT_TRUE(sync_->load());
  sync_after("bad");
  sync_after("");
  sync_after("bad");
  EXPECT_EQ(sync_->status().error.value().message, "memory: not good");
  EXPECT_EQ(sync_->status().rejected, 1U);
}

TEST_F(RuleSyncFrom, AskingByHandTriesARejectedVersionAgain) {
  ASSERT_TRUE(sync_->load());
  sync_after("bad");
  good_ = "bad";  // what it was missing is there now
  sync();
  EXPECT_EQ(in_force_, "good 1") << "nothing has changed as far as one can see";
  sync_->sync_now();
  sync();
  EXPECT_EQ(in_force_, "bad");
}

TEST_F(RuleSyncFrom, ExceptionsAreFailuresAndRejections) {
  ASSERT_TRUE(sync_->load());
  sync_after("throw");
  EXPECT_EQ(sync_->status().error.value().message, "parser trouble");
  EXPECT_EQ(sync_->status().rejected, 1U);
  source_.throws = true;
  EXPECT_FALSE(sync_->poll());
  EXPECT_EQ(sync_->status().error.value().message, "library trouble");
}

TEST_F(RuleSyncFrom, WithoutAnyRulesTheStartFailsWithWhatIsWrong) {
  hold("");
  const Parsed<void> loaded = sync_->load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().text(), "out of reach; wait");
  hold("bad");
  EXPECT_EQ(sync_->load().error().text(), "memory: not good; be good");
  EXPECT_EQ(sync_->status().version, "");
}

TEST_F(RuleSyncFrom, ARestartWithoutItsSourceUsesTheLastGoodRules) {
  ASSERT_TRUE(sync_->load());
  sync_after("good 2");
  sync_after("bad");
  clock_.advance(5h);
  for (const std::string broken : {"", "bad"}) {
    restart();
    hold(broken);
    ASSERT_TRUE(sync_->load()) << broken;
    EXPECT_EQ(in_force_, "good 2");
    const SyncStatus status = sync_->status();
    EXPECT_TRUE(status.from_last_good);
    EXPECT_EQ(status.version, "v:good 2");
    EXPECT_TRUE(status.kept_at == WallTime{101h});
    EXPECT_TRUE(status.loaded == WallTime{106h});
    EXPECT_TRUE(status.error.has_value()) << "what was wrong is not forgotten";
    EXPECT_EQ(reports_.back(), "last_good_used v:good 2");
  }
}

TEST_F(RuleSyncFrom, LastGoodRulesGiveWayToTheSourceWhenItIsWellAgain) {
  ASSERT_TRUE(sync_->load());
  restart();
  hold("");
  ASSERT_TRUE(sync_->load());
  sync_after("good 1");
  EXPECT_FALSE(sync_->status().from_last_good) << "the source holds just these";
  EXPECT_FALSE(sync_->status().error.has_value());
  sync_after("good 2");
  EXPECT_EQ(in_force_, "good 2");
  EXPECT_FALSE(sync_->status().from_last_good);
}

TEST_F(RuleSyncFrom, DamagedLastGoodRulesAreNotUsed) {
  ASSERT_TRUE(sync_->load());
  damage_last_good();
  restart();
  hold("");
  const Parsed<void> loaded = sync_->load();
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr("out of reach"));
  EXPECT_THAT(loaded.error().message, HasSubstr("it is damaged"));
  EXPECT_EQ(in_force_, "");
  EXPECT_THAT(sync_->status().last_good_error.value().message, HasSubstr("it is damaged"));
}

TEST_F(RuleSyncFrom, DamagedLastGoodRulesDoNotMatterWhileTheSourceIsWell) {
  ASSERT_TRUE(sync_->load());
  damage_last_good();
  restart();
  ASSERT_TRUE(sync_->load());
  EXPECT_FALSE(sync_->status().last_good_error.has_value());
  restart();
  hold("");
  EXPECT_TRUE(sync_->load()) << "the damaged file was not replaced";
}

// A newer program may be stricter than the one that accepted them.
TEST_F(RuleSyncFrom, LastGoodRulesAreJudgedLikeAllOthers) {
  ASSERT_TRUE(sync_->load());
  restart();
  hold("");
  good_ = "better";
  EXPECT_FALSE(sync_->load());
  EXPECT_EQ(in_force_, "");
  EXPECT_THAT(sync_->status().last_good_error.value().message, HasSubstr("rules.last-good"));
}

TEST_F(RuleSyncFrom, RulesThatCannotBeKeptAreInForceAndKeptLater) {
  std::ofstream{folder_} << "a file where the folder should be";
  ASSERT_TRUE(sync_->load());
  EXPECT_EQ(in_force_, "good 1");
  EXPECT_TRUE(sync_->status().last_good_error.has_value());
  EXPECT_THAT(reports_.back(), HasSubstr("not_kept cannot write"));
  std::filesystem::remove(folder_);
  sync();
  EXPECT_FALSE(sync_->status().last_good_error.has_value());
  restart();
  hold("");
  EXPECT_TRUE(sync_->load());
}

// The source would call back into what is gone.
TEST_F(RuleSyncFrom, WatchesFromTheStartToTheStopAndNotAfterAFailedStart) {
  hold("");
  ASSERT_FALSE(sync_->start());
  EXPECT_FALSE(source_.watched);
  hold("good 1");
  ASSERT_TRUE(sync_->start());
  EXPECT_TRUE(source_.watched);
  sync_->stop();
  EXPECT_FALSE(source_.watched);
}

TEST_F(RuleSyncFrom, ASourceThatCannotBeWatchedIsStillAsked) {
  source_.watch_fails = "no watches left";
  ASSERT_TRUE(sync_->start());
  EXPECT_EQ(in_force_, "good 1");
  EXPECT_EQ(sync_->status().watch_problem, "no watches left");
}

TEST_F(RuleSyncFrom, WithoutAFolderNothingIsKept) {
  RuleSync sync{source_, [this](const Fetched& fetched) { return accept(fetched); }, clock_, {}};
  ASSERT_TRUE(sync.load());
  EXPECT_FALSE(std::filesystem::exists(folder_));
  EXPECT_FALSE(sync.status().last_good_error.has_value());
}

}  // namespace
}  // namespace sluice::rules
