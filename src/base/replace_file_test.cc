#include "base/replace_file.h"

#include "base/read_file.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <vector>

namespace sluice {
namespace {

namespace fs = std::filesystem;

std::string content(const std::string& path) {
  return read_file(path, 1U << 20U).value_or("absent");
}

unsigned mode(const std::string& path) {
  struct stat file{};
  return ::stat(path.c_str(), &file) == 0 ? file.st_mode & 07777U : 0U;
}

TEST(ReplaceFile, LeavesTheNewContentAndNothingElse) {
  const testing::TempFolder folder;
  const std::string path = folder.file("a");
  ASSERT_TRUE(replace_file(path, "one"));
  ASSERT_TRUE(replace_file(path, "two"));
  EXPECT_EQ(content(path), "two");
  EXPECT_EQ(mode(path), 0600U);
  EXPECT_FALSE(fs::exists(path + ".new"));
}

TEST(ReplaceFile, GivenUpLeavesTheOldContent) {
  const testing::TempFolder folder;
  const std::string path = folder.file("a");
  ASSERT_TRUE(replace_file(path, "one"));
  {
    const auto given_up = FileReplacement::begin(path, WhenBusy::refuse).value();
  }
  EXPECT_EQ(content(path), "one");
  EXPECT_FALSE(fs::exists(path + ".new"));
}

TEST(ReplaceFile, OfTwoAtATimeTheSecondIsRefused) {
  const testing::TempFolder folder;
  const auto first = FileReplacement::begin(folder.file("a"), WhenBusy::refuse);
  ASSERT_TRUE(first);
  EXPECT_FALSE(FileReplacement::begin(folder.file("a"), WhenBusy::refuse));
  EXPECT_TRUE(FileReplacement::begin(folder.file("b"), WhenBusy::refuse));
}

// Who reads under the right to replace never misses what another has added.
TEST(ReplaceFile, WaitingWritersLoseNothing) {
  const testing::TempFolder folder;
  const std::string path = folder.file("a");
  constexpr int kThreads = 4;
  constexpr int kEach = 25;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) {
        auto replacement = FileReplacement::begin(path, WhenBusy::wait);
        ASSERT_TRUE(replacement) << replacement.error().text();
        const std::string before = read_file(path, 1U << 20U).value_or("");
        ASSERT_TRUE(replacement->finish(before + "x", FileAccess::owner));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(content(path), std::string(std::size_t{kThreads} * kEach, 'x'));
}

// A server under another user must still be able to read what an administrator edits.
TEST(ReplaceFile, KeepsWhoMayReadIt) {
  const testing::TempFolder folder;
  const std::string path = folder.file("a");
  std::ofstream{path} << "one";
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  auto replacement = FileReplacement::begin(path, WhenBusy::refuse).value();
  ASSERT_TRUE(replacement.finish("two", FileAccess::as_before));
  EXPECT_EQ(mode(path), 0640U);
  auto fresh = FileReplacement::begin(folder.file("b"), WhenBusy::refuse).value();
  ASSERT_TRUE(fresh.finish("two", FileAccess::as_before));
  EXPECT_EQ(mode(folder.file("b")), 0600U);
}

TEST(ReplaceFile, SaysWhatToDoWhereItCannot) {
  const testing::TempFolder folder;
  const auto done = replace_file(folder.file("absent/a"), "one");
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().text().find("create the folder"), std::string::npos);
}

}  // namespace
}  // namespace sluice
