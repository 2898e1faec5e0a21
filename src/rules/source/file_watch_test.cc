#include "rules/source/file_watch.h"

#include "base/read_file.h"
#include "rules/source/file_watch_fixture.h"
#include "support/temp_folder.h"
#include <sluice/clock.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <vector>

namespace sluice::rules {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Of one file. "-" is none at all.
class Reader : public WatchingReader {
 public:
  Reader(const std::string& path, const FileWatchTimes& times)
      : WatchingReader(
            {.files = {path}, .folders = {}},
            [path] { return read_settled_file(path, {}).value_or("-"); }, times) {}
};

// What everything here must hold for, by events and by looking.
class FileWatchBy : public ::testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static const FileWatchTimes& times() {
    return GetParam() ? kEventsOnly : kLooksOnly;
  }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

  testing::TempFolder folder_;
  const std::string path_ = folder_.file("rules");
};
INSTANTIATE_TEST_SUITE_P(Both, FileWatchBy, ::testing::Bool(), [](const auto& which) {
  return std::string{which.param ? "Events" : "Looking"};
});

TEST_P(FileWatchBy, NoticesWritingInPlace) {
  write(path_, "one");
  Reader reader{path_, times()};
  write(path_, "two!");
  EXPECT_TRUE(reader.comes_to("two!"));
  std::ofstream{path_, std::ios::app} << "more";
  EXPECT_TRUE(reader.comes_to("two!more"));
}

TEST_P(FileWatchBy, NoticesRenamingOver) {
  write(path_, "one");
  Reader reader{path_, times()};
  write_by_rename(path_, "two");
  EXPECT_TRUE(reader.comes_to("two"));
  write_by_rename(path_, "three");
  EXPECT_TRUE(reader.comes_to("three"));
}

TEST_P(FileWatchBy, NoticesDeletingAndCreatingAgain) {
  write(path_, "one");
  Reader reader{path_, times()};
  fs::remove(path_);
  EXPECT_TRUE(reader.comes_to("-"));
  write(path_, "two");
  EXPECT_TRUE(reader.comes_to("two"));
}

TEST_P(FileWatchBy, NoticesThatTheFileIsALinkToAnother) {
  write(file("a"), "one");
  write(file("b"), "two");
  fs::create_symlink("a", path_);
  Reader reader{path_, times()};
  swap_link(path_, "b");
  EXPECT_TRUE(reader.comes_to("two"));
  write(file("b"), "three");
  EXPECT_TRUE(reader.comes_to("three")) << "the new target is not watched";
}

// What the kubelet does: a new folder with a date, then one rename of ..data, then the old one
// goes.
TEST_P(FileWatchBy, NoticesEachSwapOfAKubernetesVolume) {
  fs::create_directory(file("..0"));
  write(file("..0/rules"), "version 0");
  fs::create_directory_symlink("..0", file("..data"));
  fs::create_symlink("..data/rules", path_);
  Reader reader{path_, times()};
  for (int version = 1; version <= 5; ++version) {
    const std::string next = ".." + std::to_string(version);
    const std::string text = "version " + std::to_string(version);
    fs::create_directory(file(next));
    write(file(next) + "/rules", text);
    swap_link(file("..data"), next);
    fs::remove_all(file(".." + std::to_string(version - 1)));
    ASSERT_TRUE(reader.comes_to(text)) << text;
  }
}

TEST_P(FileWatchBy, NoticesALinkSwappedFarAboveTheFile) {
  fs::create_directories(file("r1/deep/er"));
  fs::create_directories(file("r2/deep/er"));
  write(file("r1/deep/er/rules"), "one");
  write(file("r2/deep/er/rules"), "two");
  fs::create_directory_symlink("r1", file("current"));
  Reader reader{file("current/deep/er/rules"), times()};
  swap_link(file("current"), "r2");
  EXPECT_TRUE(reader.comes_to("two"));
  write_by_rename(file("r2/deep/er/rules"), "three");
  EXPECT_TRUE(reader.comes_to("three")) << "the folders behind the new link are not watched";
}

TEST_P(FileWatchBy, NoticesFoldersThatAreRenamedOrAppear) {
  Reader reader{file("a/b/rules"), times()};
  fs::create_directory(file("a"));
  fs::create_directory(file("a/b"));
  write(file("a/b/rules"), "one");
  EXPECT_TRUE(reader.comes_to("one"));
  fs::create_directories(file("other/b"));
  write(file("other/b/rules"), "two");
  fs::rename(file("a"), file("gone"));
  fs::rename(file("other"), file("a"));
  EXPECT_TRUE(reader.comes_to("two"));
}

// Refused while every user may write it: what a changed permission means does not matter here.
TEST_P(FileWatchBy, NoticesThatAFileBecomesReadable) {
  write(path_, "one");
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  Reader reader{path_, times()};
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  EXPECT_TRUE(reader.comes_to("one"));
}

// A writer that renames never shows half a file, and the last of its files is what is seen last.
TEST_P(FileWatchBy, AHundredQuickRewritesEndWithTheLastAndAreNeverTorn) {
  const auto content = [](int version) {
    return std::string(50'000, static_cast<char>('a' + version % 26)) + std::to_string(version);
  };
  std::set<std::string> written{content(0)};
  write(path_, content(0));
  Reader reader{path_, times()};
  for (int version = 1; version <= 100; ++version) {
    written.insert(content(version));
    write_by_rename(path_, content(version));
  }
  EXPECT_TRUE(reader.comes_to(content(100)));
  for (const std::string& text : reader.seen()) EXPECT_TRUE(written.contains(text));
}

TEST_P(FileWatchBy, StopsAtOnceWhileNothingHappens) {
  write(path_, "one");
  FileWatchTimes slow = times();
  slow.look_every = 1h;
  Reader reader{path_, slow};
  const MonoTime before = SystemClock{}.now().mono;
  reader.stop();
  EXPECT_LT(SystemClock{}.now().mono - before, 5s) << "it waited for an event or a look";
}

// A file mounted by itself is written by way of a name in another folder.
TEST(FileWatch, NoticesWritingByAnotherName) {
  const testing::TempFolder folder;
  fs::create_directory(folder.file("elsewhere"));
  write(folder.file("elsewhere/name"), "one");
  fs::create_hard_link(folder.file("elsewhere/name"), folder.file("rules"));
  Reader reader{folder.file("rules"), kEventsOnly};
  write(folder.file("elsewhere/name"), "two");
  EXPECT_TRUE(reader.comes_to("two"));
}

// `cat > rules` in two pieces, with a pause that is longer than the quiet time of a burst.
TEST(FileWatch, HalfAFileIsNotReportedBeforeItIsClosed) {
  const testing::TempFolder folder;
  const std::string path = folder.file("rules");
  write(path, "one");
  Reader reader{path, kEventsOnly};
  {
    std::ofstream file{path, std::ios::trunc};
    file << "tw" << std::flush;
    EXPECT_FALSE(reader.is_called(1)) << "half of it: " << reader.seen().front();
    file << "o" << std::flush;
  }
  EXPECT_TRUE(reader.comes_to("two"));
  EXPECT_THAT(reader.seen(), ::testing::Each("two"));
}

TEST(FileWatch, ANewFileIsNotReportedBeforeItIsClosed) {
  const testing::TempFolder folder;
  const std::string path = folder.file("rules");
  Reader reader{path, kEventsOnly};
  {
    std::ofstream file{path};
    EXPECT_FALSE(reader.is_called(1)) << "it is empty";
    file << "one";
  }
  EXPECT_TRUE(reader.comes_to("one"));
  EXPECT_THAT(reader.seen(), ::testing::Each("one"));
}

// Some writers never close their file.
TEST(FileWatch, AFileThatStaysOpenIsReportedAfterAQuietTime) {
  const testing::TempFolder folder;
  const std::string path = folder.file("rules");
  write(path, "one");
  FileWatchTimes times = kEventsOnly;
  times.debounce.open_quiet = 20ms;
  Reader reader{path, times};
  std::ofstream file{path, std::ios::trunc};
  file << "two" << std::flush;
  EXPECT_TRUE(reader.comes_to("two"));
  file << " and more" << std::flush;
  EXPECT_TRUE(reader.comes_to("two and more"));
}

TEST(FileWatch, TheQueueTellsWhetherAFileIsBeingWritten) {
  const testing::TempFolder folder;
  const std::string path = folder.file("rules");
  write(path, "one");
  Inotify inotify;
  inotify.follow({.files = {path}, .folders = {}});
  std::ofstream file{path, std::ios::trunc};
  EXPECT_TRUE(inotify.drain());
  EXPECT_TRUE(inotify.is_being_written()) << "it was emptied, and is open";
  file << "two" << std::flush;
  EXPECT_TRUE(inotify.drain());
  EXPECT_TRUE(inotify.is_being_written());
  file.close();
  EXPECT_TRUE(inotify.drain());
  EXPECT_FALSE(inotify.is_being_written());
  file.open(path, std::ios::trunc);
  write_by_rename(path, "three");
  EXPECT_TRUE(inotify.drain());
  inotify.follow({.files = {path}, .folders = {}});
  EXPECT_FALSE(inotify.is_being_written()) << "what is open has no name any more";
  fs::create_hard_link(path, folder.file("other"));
  fs::remove(path);
  fs::create_hard_link(folder.file("other"), path);
  EXPECT_TRUE(inotify.drain());
  EXPECT_FALSE(inotify.is_being_written()) << "a link leads to a file that is complete";
}

// The other file's events come first in the queue, so a call for them would be seen.
TEST(FileWatch, OtherFilesInTheFolderDoNotMatter) {
  const testing::TempFolder folder;
  write(folder.file("rules"), "one");
  Inotify inotify;
  inotify.follow({.files = {folder.file("rules")}, .folders = {}});
  write(folder.file("other"), "x");
  fs::remove(folder.file("other"));
  EXPECT_FALSE(inotify.drain());
  write(folder.file("rules"), "two");
  EXPECT_TRUE(inotify.drain());
  EXPECT_FALSE(inotify.drain()) << "the queue is empty";
}

// In one folder, in another, and behind links: each of them, and nothing else.
TEST(FileWatch, SeveralFilesAreWatchedTogether) {
  const testing::TempFolder folder;
  fs::create_directory(folder.file("v1"));
  write(folder.file("v1/linked"), "one");
  fs::create_symlink("v1", folder.file("..data"));
  fs::create_symlink("..data/linked", folder.file("linked"));
  const std::vector<std::string> paths{folder.file("a"), folder.file("b"), folder.file("v1/linked"),
                                       folder.file("linked")};
  for (const std::string& path : paths) write(path, "one");
  Inotify inotify;
  inotify.follow({.files = paths, .folders = {}});
  for (const std::string& path : paths) {
    write(path, "two");
    EXPECT_TRUE(inotify.drain()) << path;
  }
  write(folder.file("v1/other"), "x");
  write(folder.file("c"), "x");
  EXPECT_FALSE(inotify.drain());
  fs::create_directory(folder.file("v2"));
  swap_link(folder.file("..data"), "v2");
  EXPECT_TRUE(inotify.drain());
}

// The file in it may become readable by that.
TEST(FileWatch, PermissionsOfAFolderOnTheWayMatter) {
  const testing::TempFolder folder;
  fs::create_directory(folder.file("on"));
  fs::create_directory(folder.file("on/the"));
  write(folder.file("on/the/way"), "one");
  Inotify inotify;
  inotify.follow({.files = {folder.file("on/the/way")}, .folders = {}});
  ASSERT_EQ(::chmod(folder.file("on").c_str(), 0700), 0);
  EXPECT_TRUE(inotify.drain());
}

TEST(FileWatch, ABurstIsNotACallPerWrite) {
  const testing::TempFolder folder;
  write(folder.file("rules"), "one");
  FileWatchTimes times = kEventsOnly;
  times.debounce = {.quiet = 300ms, .at_most = 1h};
  Reader reader{folder.file("rules"), times};
  for (int i = 0; i < 50; ++i) write(folder.file("rules"), std::to_string(i));
  EXPECT_TRUE(reader.comes_to("49"));
  EXPECT_LT(reader.seen().size(), 10U) << "50 writes and hardly a pause between them";
}

// Looking every 5 ms, it would soon be called many times.
TEST(FileWatch, OneChangeIsNotFoundAgainWithEachLook) {
  const testing::TempFolder folder;
  write(folder.file("rules"), "one");
  Reader reader{folder.file("rules"), kLooksOnly};
  write_by_rename(folder.file("rules"), "two");
  ASSERT_TRUE(reader.comes_to("two"));
  EXPECT_FALSE(reader.is_called(3));
}

TEST(FileWatch, NothingIsWrongWhereEverythingCanBeWatched) {
  const testing::TempFolder folder;
  write(folder.file("rules"), "one");
  const Reader reader{folder.file("rules"), kEventsOnly};
  EXPECT_EQ(reader.problem(), "");
}

// Poll refuses to wait for more descriptors than may be open; then the thread must not spin.
TEST(FileWatch, WaitsAlsoWhereNoDescriptorsAreAllowed) {
  const testing::TempFolder folder;
  write(folder.file("rules"), "one");
  const Reader reader{folder.file("rules"), kEventsOnly};
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::clock_t began = std::clock();
  std::this_thread::sleep_for(300ms);
  const double used = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LT(used, 0.1) << "seconds of processor time, of 0.3 s";
}

}  // namespace
}  // namespace sluice::rules
