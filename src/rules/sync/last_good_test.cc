#include "rules/sync/last_good.h"

#include "base/replace_file.h"
#include "support/child.h"
#include "support/property.h"
#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sluice::rules {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kSource = "file /etc/rules.yaml";

Kept kept(std::string text) {
  return {.text = std::move(text), .version = "v", .accepted = WallTime{Nanos{1234567890123}}};
}
std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path, std::ios::binary}.rdbuf();
  return text.str();
}
void write(const std::string& path, const std::string& text) {
  std::ofstream{path, std::ios::binary | std::ios::trunc} << text;
}

class LastGoodIn : public ::testing::Test {
 protected:
  [[nodiscard]] std::string loaded() const {
    const auto found = last_good_.load();
    if (!found) return "refused: " + found.error().text();
    return found->has_value() ? (*found)->text : "nothing";
  }

  testing::TempFolder temporary_;
  const std::string folder_ = temporary_.file("state");
  const LastGood last_good_{
      {.file = folder_ + "/rules.last-good", .source = kSource, .bytes_max = 1000}};
};

TEST_F(LastGoodIn, WhatIsKeptIsLoadedAgain) {
  EXPECT_EQ(loaded(), "nothing");
  ASSERT_TRUE(last_good_.keep(kept("one")));
  EXPECT_EQ(last_good_.load().value(), kept("one"));
  ASSERT_TRUE(last_good_.keep(kept("two")));
  EXPECT_EQ(last_good_.load().value(), kept("two"));
}

TEST_F(LastGoodIn, OnlyTheOwnerMayReadIt) {
  const mode_t before = ::umask(0);
  ASSERT_TRUE(last_good_.keep(kept("one")));
  ::umask(before);
  struct stat file{};
  ASSERT_EQ(::stat(last_good_.path().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777U, 0600U);
  ASSERT_EQ(::stat(folder_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777U, 0700U);
}

TEST_F(LastGoodIn, NothingElseStaysInTheFolder) {
  ASSERT_TRUE(last_good_.keep(kept("one")));
  write(last_good_.path() + ".new", std::string(5000, 'x'));  // of a killed writer
  ASSERT_EQ(::chmod((last_good_.path() + ".new").c_str(), 0666), 0);
  ASSERT_TRUE(last_good_.keep(kept("two")));
  EXPECT_EQ(loaded(), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator{folder_}, {}), 1);
  EXPECT_EQ(fs::status(last_good_.path()).permissions(), fs::perms{0600});
}

TEST_F(LastGoodIn, RulesOfAnotherSourceAreRefused) {
  ASSERT_TRUE(last_good_.keep(kept("one")));
  const LastGood other{{.file = folder_ + "/rules.last-good", .source = "file /other"}};
  const auto found = other.load();
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr(kSource));
  EXPECT_THAT(found.error().message, HasSubstr("file /other"));
  EXPECT_THAT(found.error().remedy, HasSubstr("another file for them"));
}

TEST_F(LastGoodIn, AForeignFileIsRefused) {
  ASSERT_TRUE(fs::create_directory(folder_));
  write(last_good_.path(), "rules: []\n");
  EXPECT_THAT(loaded(), HasSubstr("holds no rules kept by sluice"));
  write(last_good_.path(), "");
  EXPECT_THAT(loaded(), HasSubstr("holds no rules kept by sluice"));
}

TEST_F(LastGoodIn, AnotherFormatIsRefused) {
  ASSERT_TRUE(last_good_.keep(kept("one")));
  std::string file = content(last_good_.path());
  file.replace(file.find(" 1\n"), 3, " 2\n");
  write(last_good_.path(), file);
  EXPECT_THAT(loaded(), HasSubstr("another version of sluice"));
}

TEST_F(LastGoodIn, AFileThatOthersMayWriteOrALinkIsRefused) {
  ASSERT_TRUE(last_good_.keep(kept("one")));
  ASSERT_EQ(::chmod(last_good_.path().c_str(), 0666), 0);
  EXPECT_THAT(loaded(), HasSubstr("every user"));
  ASSERT_EQ(::chmod(last_good_.path().c_str(), 0600), 0);
  fs::rename(last_good_.path(), folder_ + "/elsewhere");
  fs::create_symlink("elsewhere", last_good_.path());
  EXPECT_THAT(loaded(), HasSubstr("not a symbolic link"));
}

TEST_F(LastGoodIn, MoreThanTheLimitIsNotKept) {
  ASSERT_TRUE(last_good_.keep(kept(std::string(1000, 'a'))));
  const auto refused = last_good_.keep(kept(std::string(1001, 'b')));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("1001 bytes"));
  EXPECT_EQ(loaded(), std::string(1000, 'a'));
}

TEST_F(LastGoodIn, AFolderThatCannotBeIsNamedWithARemedy) {
  const std::string deep = temporary_.file("a/b/c");
  const LastGood last_good{{.file = deep + "/rules.last-good", .source = kSource}};
  const auto refused = last_good.keep(kept("one"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("create the folder " + deep));
}

TEST_F(LastGoodIn, TheSecondOfTwoWritersIsRefused) {
  bool second_refused = false;
  ASSERT_TRUE(last_good_.keep(kept("one"), [&] {
    const auto second = last_good_.keep(kept("two"));
    second_refused = !second && second.error().remedy.find("of its own") != std::string::npos;
  }));
  EXPECT_TRUE(second_refused);
  EXPECT_EQ(loaded(), "one");
}

// Killed at the worst moment: the new content is written and not yet renamed.
TEST_F(LastGoodIn, AWriterKilledBeforeTheRenameLeavesTheOldContent) {
  ASSERT_TRUE(last_good_.keep(kept("old")));
  const pid_t child = testing::start_child([this] {
    const auto never = last_good_.keep(kept("new"), [] { ::raise(SIGKILL); });
    return never ? EXIT_SUCCESS : EXIT_FAILURE;
  });
  EXPECT_EQ(testing::wait_for_child(child), std::nullopt) << "it was not killed";
  EXPECT_TRUE(fs::exists(last_good_.path() + ".new")) << "it was killed too early";
  EXPECT_EQ(loaded(), "old");
  ASSERT_TRUE(last_good_.keep(kept("newer")));
  EXPECT_EQ(loaded(), "newer");
}

// Killed at any other moment: whole, and not older than the last one that was done.
TEST_F(LastGoodIn, AWriterKilledAnyTimeLeavesWholeContent) {
  for (int round = 1; round <= 15; ++round) {
    std::array<int, 2> done{};
    ASSERT_EQ(::pipe(done.data()), 0);
    const pid_t child = testing::start_child([&] {
      for (char number = 0;; ++number) {
        const std::string text(900, static_cast<char>('a' + number % 26));
        if (!last_good_.keep(kept(text))) return EXIT_FAILURE;
        if (::write(done[1], &number, 1) != 1) return EXIT_FAILURE;
      }
    });
    ::close(done[1]);
    char last = 0;
    for (int i = 0; i < round; ++i) ASSERT_EQ(::read(done[0], &last, 1), 1);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    EXPECT_EQ(testing::wait_for_child(child), std::nullopt);
    ::close(done[0]);
    const std::string found = loaded();
    ASSERT_EQ(found, std::string(900, found.front()));
  }
}

TEST(LastGoodFile, HoldsAnyTextAndAnyNames) {
  testing::check_property(
      200, [](const std::string& source, const std::string& version, const std::string& text) {
        const Kept all{.text = text, .version = version, .accepted = WallTime{Nanos{7}}};
        const Parsed<Kept> back = parse_last_good(last_good_file(source, all), source, "path");
        RC_ASSERT(back.has_value());
        RC_ASSERT(*back == all);
      });
}

TEST(LastGoodFile, NoByteCanBeChangedRemovedOrAdded) {
  const std::string file = last_good_file(kSource, kept("some rules\nof two lines\n"));
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    EXPECT_FALSE(parse_last_good(changed, kSource, "path")) << "changed at " << at;
    EXPECT_FALSE(parse_last_good(file.substr(0, at), kSource, "path")) << "cut at " << at;
    changed = file;
    changed.insert(at, 1, '0');
    EXPECT_FALSE(parse_last_good(changed, kSource, "path")) << "added at " << at;
  }
  EXPECT_FALSE(parse_last_good(file + "\n", kSource, "path"));
}

TEST(LastGoodFile, RandomBytesAreRefused) {
  testing::check_property(200, [](const std::string& bytes) {
    RC_ASSERT(!parse_last_good(bytes, kSource, "path"));
    RC_ASSERT(!parse_last_good("sluice last good rules 1\n" + bytes, kSource, "path"));
  });
}

}  // namespace
}  // namespace sluice::rules
