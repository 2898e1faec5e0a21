#include "base/folder.h"
#include "base/read_file.h"
#include "rules/source/file_watch.h"
#include "rules/source/file_watch_fixture.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace sluice::rules {
namespace {

namespace fs = std::filesystem;

// All of a folder: "name=text name=text".
std::string content_of(const fs::path& folder) {
  std::string all;
  for (const fs::directory_entry& entry : visible_below(folder).entries) {
    std::error_code ignored;
    if (!entry.is_regular_file(ignored)) continue;
    all += all.empty() ? "" : " ";
    all += entry.path().lexically_relative(folder).string() + "=" +
           read_settled_file(entry.path().string(), {}).value_or("-");
  }
  return all;
}

class Reader : public WatchingReader {
 public:
  Reader(const std::string& folder, const FileWatchTimes& times)
      : WatchingReader(
            {.files = {}, .folders = {folder}}, [folder] { return content_of(folder); }, times) {}
};

// What everything here must hold for, by events and by looking.
class FolderWatchBy : public ::testing::TestWithParam<bool> {
 protected:
  FolderWatchBy() { fs::create_directory(path_); }
  [[nodiscard]] static const FileWatchTimes& times() {
    return GetParam() ? kEventsOnly : kLooksOnly;
  }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

  testing::TempFolder folder_;
  const std::string path_ = folder_.file("trees");
};
INSTANTIATE_TEST_SUITE_P(Both, FolderWatchBy, ::testing::Bool(), [](const auto& which) {
  return std::string{which.param ? "Events" : "Looking"};
});

TEST_P(FolderWatchBy, NoticesEditsNewFilesAndRemovedOnes) {
  write(file("a"), "1");
  Reader reader{path_, times()};
  write(file("a"), "22");
  EXPECT_TRUE(reader.comes_to("a=22"));
  write_by_rename(file("a"), "333");
  EXPECT_TRUE(reader.comes_to("a=333"));
  write(file("b"), "1");
  EXPECT_TRUE(reader.comes_to("a=333 b=1"));
  fs::rename(file("b"), file("c"));
  EXPECT_TRUE(reader.comes_to("a=333 c=1"));
  fs::remove(file("a"));
  EXPECT_TRUE(reader.comes_to("c=1"));
}

TEST_P(FolderWatchBy, NoticesWhatHappensInFoldersBelow) {
  Reader reader{path_, times()};
  fs::create_directories(file("deep/er"));
  write(file("deep/er/a"), "1");
  EXPECT_TRUE(reader.comes_to("deep/er/a=1"));
  write(file("deep/er/a"), "22");
  EXPECT_TRUE(reader.comes_to("deep/er/a=22"));
  fs::rename(file("deep"), folder_.file("away"));
  EXPECT_TRUE(reader.comes_to(""));
  fs::rename(folder_.file("away"), file("back"));
  EXPECT_TRUE(reader.comes_to("back/er/a=22"));
}

// What the kubelet does: a new folder with a date, one rename of ..data, then links to files that
// are new and none to those that are gone.
TEST_P(FolderWatchBy, NoticesEachSwapOfAKubernetesVolume) {
  fs::create_directory(file("..0"));
  write(file("..0/a"), "0");
  fs::create_directory_symlink("..0", file("..data"));
  fs::create_symlink("..data/a", file("a"));
  Reader reader{path_, times()};
  for (int version = 1; version <= 5; ++version) {
    const std::string number = std::to_string(version);
    fs::create_directory(file(".." + number));
    write(file(".." + number + "/a"), number);
    swap_link(file("..data"), ".." + number);
    fs::remove_all(file(".." + std::to_string(version - 1)));
    ASSERT_TRUE(reader.comes_to("a=" + number));
  }
  write(file("..5/b"), "6");
  fs::create_symlink("..data/b", file("b"));
  EXPECT_TRUE(reader.comes_to("a=5 b=6"));
  fs::remove(file("a"));
  EXPECT_TRUE(reader.comes_to("b=6"));
}

TEST_P(FolderWatchBy, NoticesThatTheFolderItselfIsAnother) {
  write(file("a"), "1");
  fs::create_directory(folder_.file("other"));
  write(folder_.file("other/b"), "2");
  const std::string link = folder_.file("link");
  fs::create_directory_symlink("trees", link);
  Reader reader{link, times()};
  swap_link(link, "other");
  EXPECT_TRUE(reader.comes_to("b=2"));
  write(folder_.file("other/b"), "33");
  EXPECT_TRUE(reader.comes_to("b=33")) << "the folder behind the new link is not watched";
  fs::remove_all(folder_.file("other"));
  EXPECT_TRUE(reader.comes_to(""));
  fs::create_directory(folder_.file("other"));
  write(folder_.file("other/c"), "4");
  EXPECT_TRUE(reader.comes_to("c=4"));
}

TEST_P(FolderWatchBy, NoticesWhereLinksLead) {
  fs::create_directory(folder_.file("elsewhere"));
  fs::create_symlink("../elsewhere/a", file("a"));
  fs::create_directory_symlink(".", file("round"));
  Reader reader{path_, times()};
  write(folder_.file("elsewhere/a"), "1");
  EXPECT_TRUE(reader.comes_to("a=1"));
  write(folder_.file("elsewhere/a"), "22");
  EXPECT_TRUE(reader.comes_to("a=22"));
  write(file("b"), "3");
  EXPECT_TRUE(reader.comes_to("a=22 b=3")) << "a link to the folder has taken its watch";
}

// A file that is new, and one that was there: neither is read while its writer pauses.
TEST(FolderWatch, HalfAFileIsNotReportedBeforeItIsClosed) {
  const testing::TempFolder folder;
  write(folder.file("a"), "1");
  Reader reader{folder.file(""), kEventsOnly};
  {
    std::ofstream a{folder.file("a"), std::ios::trunc};
    std::ofstream b{folder.file("b")};
    a << "2" << std::flush;
    b << "3" << std::flush;
    b.close();
    EXPECT_FALSE(reader.is_called(1)) << "half of it: " << reader.seen().front();
    a << "2";
  }
  EXPECT_TRUE(reader.comes_to("a=22 b=3"));
  EXPECT_EQ(reader.seen().size(), 1U);
}

// Nobody reads what is hidden: the copy of an editor, for one.
TEST_P(FolderWatchBy, HiddenFilesDoNotMatter) {
  write(file("a"), "1");
  Reader reader{path_, times()};
  write(file(".a.swp"), "x");
  fs::create_directory(file(".git"));
  write(file(".git/index"), "x");
  fs::remove(file(".a.swp"));
  EXPECT_FALSE(reader.is_called(1));
  write(file("a"), "22");
  EXPECT_TRUE(reader.comes_to("a=22"));
}

}  // namespace
}  // namespace sluice::rules
