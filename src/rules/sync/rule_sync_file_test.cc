// Rules in a file, brought into force by the threads that do so in production.
#include "rules/source/file_source.h"
#include "rules/sync/rule_sync.h"
#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <sys/stat.h>
#include <thread>
#include <vector>

namespace sluice::rules {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr auto kDeadline = 20s;

void write(const std::string& path, const std::string& text) {
  std::ofstream{path, std::ios::trunc} << text;
}
void write_by_rename(const std::string& path, const std::string& text) {
  write(path + "~", text);
  fs::rename(path + "~", path);
}

// Good rules begin with "good" and end with "end"; all else is half written or a mistake.
class RuleSyncOfFile : public ::testing::Test {
 protected:
  // Only events bring a change before the deadline, unless the test says otherwise.
  void begin(Nanos interval = 1h, bool events = true) {
    end();
    source_ = std::make_unique<FileSource>(
        path_, FileSourceOptions{.limits = {},
                                 .watch = {.debounce = {.quiet = 2ms, .at_most = 50ms},
                                           .look_every = 1h,
                                           .use_events = events}});
    const ScheduleTimes times{
        .interval = interval, .retry = interval, .retry_max = interval, .jitter_percent = 10};
    sync_ = std::make_unique<RuleSync>(
        *source_, [this](const Fetched& fetched) { return accept(fetched); }, clock_,
        RuleSyncOptions{
            .schedule = times, .seed = 1, .last_good_file = folder_.file("state/rules.last-good")},
        [this](const SyncReport&) {
          const std::scoped_lock lock{mutex_};
          changed_.notify_all();
        });
  }
  void end() {
    sync_.reset();
    source_.reset();
  }
  ~RuleSyncOfFile() override { end(); }

  Parsed<void> accept(const Fetched& fetched) {
    if (!fetched.text.starts_with("good") || !fetched.text.ends_with("end")) {
      return mistake("not good");
    }
    const std::scoped_lock lock{mutex_};
    accepted_.push_back(fetched.text);
    return {};
  }
  // Waits for reports, which come after the status has changed.
  template <class Condition>
  [[nodiscard]] bool comes_true(Condition condition) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, kDeadline, [&] { return condition(); });
  }
  [[nodiscard]] bool comes_to(const std::string& text) {
    return comes_true([&] { return !accepted_.empty() && accepted_.back() == text; });
  }

  testing::TempFolder folder_;
  const std::string path_ = folder_.file("rules");
  SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> accepted_;
  std::unique_ptr<FileSource> source_;
  std::unique_ptr<RuleSync> sync_;
};

TEST_F(RuleSyncOfFile, ASaveComesIntoForce) {
  write(path_, "good 1 end");
  begin();
  ASSERT_TRUE(sync_->start());
  ASSERT_TRUE(comes_to("good 1 end"));
  write_by_rename(path_, "good 2 end");
  EXPECT_TRUE(comes_to("good 2 end"));
  write(path_, "good 3 end");
  EXPECT_TRUE(comes_to("good 3 end"));
  EXPECT_EQ(sync_->status().watch_problem, "");
}

TEST_F(RuleSyncOfFile, HalfAFileIsRejectedAndTheRestAcceptedLater) {
  write(path_, "good 1 end");
  begin();
  ASSERT_TRUE(sync_->start());
  write(path_, "good 2 ");
  ASSERT_TRUE(comes_true([this] { return sync_->status().rejected == 1; }));
  std::ofstream{path_, std::ios::app} << "end";
  EXPECT_TRUE(comes_to("good 2 end"));
  EXPECT_FALSE(sync_->status().error.has_value());
}

// A reload asks for the rules whatever file has changed.
TEST_F(RuleSyncOfFile, HalfAFileIsNotTakenWhenAskedForByHand) {
  write(path_, "good 1 end");
  begin();
  ASSERT_TRUE(sync_->start());
  std::ofstream writer{path_, std::ios::trunc};
  writer << "good 2 end" << std::flush;  // what reads as a whole one
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (!source_->is_being_written() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  ASSERT_TRUE(source_->is_being_written());
  for (int i = 0; i < 20; ++i) {
    sync_->sync_now();
    EXPECT_FALSE(sync_->poll());
  }
  EXPECT_EQ(sync_->status().accepted, 1U);
  writer << " and this end" << std::flush;
  writer.close();
  EXPECT_TRUE(comes_to("good 2 end and this end"));
}

TEST_F(RuleSyncOfFile, AHundredQuickRewritesEndWithTheLastAndAreNeverTorn) {
  const auto content = [](int version) {
    return "good" + std::string(30'000, static_cast<char>('a' + version % 26)) +
           std::to_string(version) + "end";
  };
  std::set<std::string> written{content(0)};
  write(path_, content(0));
  begin();
  ASSERT_TRUE(sync_->start());
  for (int version = 1; version <= 100; ++version) {
    written.insert(content(version));
    write_by_rename(path_, content(version));
  }
  EXPECT_TRUE(comes_to(content(100)));
  EXPECT_EQ(sync_->status().rejected, 0U);
  EXPECT_EQ(sync_->status().failed, 0U) << "there was a file at any time";
  for (const std::string& text : accepted_) EXPECT_TRUE(written.contains(text));
}

TEST_F(RuleSyncOfFile, UnreadableAndReadableAgain) {
  write(path_, "good 1 end");
  begin();
  ASSERT_TRUE(sync_->start());
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  ASSERT_TRUE(comes_true([this] { return sync_->status().failed == 1; }));
  EXPECT_THAT(sync_->status().error.value().message, HasSubstr("every user"));
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  EXPECT_TRUE(comes_true([this] { return !sync_->status().error; }));
  fs::remove(path_);
  ASSERT_TRUE(comes_true([this] { return sync_->status().failed >= 2; }));
  EXPECT_FALSE(sync_->status().version.empty()) << "the rules stay in force";
  write_by_rename(path_, "good 2 end");
  EXPECT_TRUE(comes_to("good 2 end"));
}

TEST_F(RuleSyncOfFile, WithoutEventsTheIntervalFindsAChange) {
  write(path_, "good 1 end");
  begin(5ms, false);
  ASSERT_TRUE(sync_->start());
  write_by_rename(path_, "good 2 end");
  EXPECT_TRUE(comes_to("good 2 end"));
}

TEST_F(RuleSyncOfFile, ABrokenFileAtTheStartIsReplacedByTheLastGoodAndThenByTheMendedOne) {
  write(path_, "good 1 end");
  begin();
  ASSERT_TRUE(sync_->start());
  end();
  write(path_, "broken");
  begin();
  ASSERT_TRUE(sync_->start());
  EXPECT_TRUE(comes_to("good 1 end"));
  EXPECT_TRUE(sync_->status().from_last_good);
  EXPECT_EQ(sync_->status().error.value().message, "not good");
  write_by_rename(path_, "good 2 end");
  EXPECT_TRUE(comes_true([this] { return !sync_->status().from_last_good; }));
  EXPECT_EQ(accepted_.back(), "good 2 end");
}

TEST_F(RuleSyncOfFile, WithoutAnyRulesNothingIsStarted) {
  begin();
  const Parsed<void> started = sync_->start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().text(), HasSubstr(path_));
  write(path_, "good 1 end");
  ASSERT_TRUE(sync_->start()) << "a second start may succeed";
  EXPECT_EQ(accepted_.size(), 1U);
}

TEST_F(RuleSyncOfFile, AskingByHandTriesARejectedFileAgain) {
  write(path_, "good 1 end");
  begin();
  ASSERT_TRUE(sync_->start());
  write_by_rename(path_, "broken");
  ASSERT_TRUE(comes_true([this] { return sync_->status().rejected == 1; }));
  sync_->sync_now();
  EXPECT_TRUE(comes_true([this] { return sync_->status().rejected == 2; }));
}

TEST_F(RuleSyncOfFile, StopsAtOnceAndThenNothingChanges) {
  write(path_, "good 1 end");
  begin();
  ASSERT_TRUE(sync_->start());
  const auto before = std::chrono::steady_clock::now();
  sync_->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s) << "it waited for an event or a run";
  const std::uint64_t attempts = sync_->status().accepted + sync_->status().unchanged;
  write_by_rename(path_, "good 2 end");
  sync_->sync_now();
  EXPECT_EQ(sync_->status().accepted + sync_->status().unchanged, attempts);
  ASSERT_TRUE(sync_->start()) << "and goes on when started again";
  EXPECT_EQ(accepted_.back(), "good 2 end");
}

// For ThreadSanitizer, and so that no status is half of one attempt and half of another.
TEST_F(RuleSyncOfFile, StatusIsWholeWhileRulesChange) {
  write(path_, "good 0 end");
  begin();
  ASSERT_TRUE(sync_->start());
  std::atomic<bool> done = false;
  std::vector<std::jthread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      while (!done) {
        const SyncStatus status = sync_->status();
        EXPECT_EQ(status.version.size(), 32U);
        EXPECT_EQ(status.error.has_value(), !status.rejected_version.empty());
      }
    });
  }
  for (int version = 1; version <= 20; ++version) {
    write_by_rename(path_, version % 2 == 0 ? "good " + std::to_string(version) + " end" : "bad");
    sync_->sync_now();
  }
  EXPECT_TRUE(comes_to("good 20 end"));
  sync_->stop();
  done = true;
}

}  // namespace
}  // namespace sluice::rules
