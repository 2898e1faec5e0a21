#include "base/read_file.h"

#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <sys/stat.h>
#include <thread>

namespace sluice {
namespace {

class ReadFile : public ::testing::Test {
 protected:
  ReadFile() { std::ofstream{path_} << "content"; }
  void allow(mode_t mode) const { ASSERT_EQ(::chmod(path_.c_str(), mode), 0); }

  testing::TempFolder folder_;
  std::string path_ = folder_.file("file");
};

TEST_F(ReadFile, BelievesWhatNotEverybodyMayChange) {
  for (const mode_t mode : {0600U, 0644U, 0664U}) {
    allow(mode);
    EXPECT_EQ(read_trusted_file(path_, 100).value(), "content");
  }
  for (const mode_t mode : {0666U, 0602U}) {
    allow(mode);
    const Parsed<std::string> text = read_trusted_file(path_, 100);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().message, path_ + " can be changed by every user of this machine");
    EXPECT_EQ(text.error().remedy, "chmod o-w " + path_);
    EXPECT_EQ(read_file(path_, 100).value(), "content") << "where it does not matter";
  }
}

// A device has no content that somebody could have put there.
TEST_F(ReadFile, AsksOnlyFilesWhoMayChangeThem) {
  EXPECT_EQ(read_trusted_file("/dev/null", 100).value(), "");
}

// Each with what to do about it.
TEST_F(ReadFile, SaysWhatIsWrong) {
  for (const auto& read : {read_file, read_trusted_file}) {
    EXPECT_EQ(read(folder_.file("absent"), 100).error().text(),
              "cannot read '" + folder_.file("absent") +
                  "': No such file or directory; create it, or name another file");
    EXPECT_EQ(read(folder_.file("."), 100).error().text(),
              "cannot read '" + folder_.file(".") + "': Is a directory; name a file, not a folder");
    EXPECT_EQ(read(path_, 6).error().message, "'" + path_ + "' is larger than 6 bytes");
  }
  EXPECT_TRUE(read_settled_file(folder_.file("absent"), {}).error().missing);
  EXPECT_FALSE(read_settled_file(folder_.file("."), {}).error().missing);
}

// What is piped in, and the kernel's files, which say that they hold nothing. Neither can be told
// to be whole.
TEST_F(ReadFile, TakesWhatIsNoFileUnlessItHasToBeSettled) {
  const std::string pipe = folder_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::jthread writer{[&] { std::ofstream{pipe} << "piped"; }};
  EXPECT_EQ(read_trusted_file(pipe, 100).value(), "piped");
  EXPECT_FALSE(read_settled_file(pipe, {}));
  EXPECT_FALSE(read_file("/proc/self/status", 1 << 20).value().empty());
  EXPECT_FALSE(read_settled_file("/proc/self/status", {}));
}

TEST_F(ReadFile, WarnsOfSecretsThatEverybodyMayRead) {
  allow(0640);
  EXPECT_FALSE(warn_if_world_readable(path_));
  allow(0644);
  ASSERT_TRUE(warn_if_world_readable(path_));
  EXPECT_EQ(warn_if_world_readable(path_)->remedy, "chmod o-r " + path_);
  EXPECT_FALSE(warn_if_world_readable(folder_.file("absent")));
}

TEST_F(ReadFile, IsBounded) {
  EXPECT_TRUE(read_trusted_file(path_, 7));
  EXPECT_FALSE(read_trusted_file(path_, 6));
  EXPECT_FALSE(read_trusted_file(folder_.file("absent"), 6));
}

}  // namespace
}  // namespace sluice
