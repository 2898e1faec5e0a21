#include "rules/source/file_source.h"

#include "support/child.h"
#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

namespace sluice::rules {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileSourceOf : public ::testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream{path_, std::ios::trunc} << text; }
  [[nodiscard]] Diagnostic refusal(const FileSourceOptions& options = {}) const {
    FileSource source{path_, options};
    const Parsed<Fetched> fetched = source.fetch();
    EXPECT_FALSE(fetched.has_value());
    return fetched ? Diagnostic{} : fetched.error();
  }

  testing::TempFolder folder_;
  const std::string path_ = folder_.file("rules.yaml");
};

TEST_F(FileSourceOf, HandsOutTheWholeFile) {
  const std::string text = std::string(200'000, 'a') + '\0' + "end";
  write(text);
  FileSource source{path_};
  const Parsed<Fetched> fetched = source.fetch();
  ASSERT_TRUE(fetched) << fetched.error().text();
  EXPECT_EQ(fetched->text, text);
  EXPECT_EQ(fetched->where, path_);
  EXPECT_EQ(source.name(), "file " + path_);
}

TEST_F(FileSourceOf, TheVersionIsThatOfTheContentAndNotOfTheFile) {
  write("one");
  FileSource source{path_};
  const std::string version = source.fetch().value().version;
  fs::remove(path_);
  write("one");
  EXPECT_EQ(source.fetch().value().version, version);
  write("two");
  EXPECT_NE(source.fetch().value().version, version);
}

TEST_F(FileSourceOf, ARelativePathStaysWhatItWas) {
  write("one");
  const fs::path before = fs::current_path();
  fs::current_path(fs::path{path_}.parent_path());
  FileSource source{"rules.yaml"};
  fs::current_path(before);
  EXPECT_EQ(source.fetch().value().text, "one");
}

TEST_F(FileSourceOf, AMissingFileIsNamedWithARemedy) {
  const Diagnostic refused = refusal();
  EXPECT_THAT(refused.message, HasSubstr(path_));
  EXPECT_THAT(refused.message, HasSubstr("No such file"));
  EXPECT_THAT(refused.remedy, HasSubstr("create it"));
}

TEST_F(FileSourceOf, AFileAtItsLimitIsReadAndOneByteMoreIsNot) {
  const FileSourceOptions options{.limits = {.bytes_max = 10}, .watch = {}};
  write("0123456789");
  EXPECT_EQ(FileSource(path_, options).fetch().value().text, "0123456789");
  write("0123456789a");
  EXPECT_THAT(refusal(options).message, HasSubstr("larger than 10 bytes"));
}

TEST_F(FileSourceOf, AnEmptyFileIsNotNoRules) {
  write("");
  EXPECT_THAT(refusal().text(), HasSubstr("is empty; to have no rules"));
}

TEST_F(FileSourceOf, AFolderIsRefused) {
  fs::create_directory(path_);
  EXPECT_THAT(refusal().message, HasSubstr("is a folder, not a file"));
}

// Also without waiting for somebody to write into it.
TEST_F(FileSourceOf, APipeIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(refusal().message, HasSubstr("is a pipe, not a file"));
}

TEST_F(FileSourceOf, ADeviceIsRefused) {
  fs::create_symlink("/dev/zero", path_);
  EXPECT_THAT(refusal().message, HasSubstr("is a device, not a file"));
}

// The kernel's own files say that they hold nothing, like a file that grows while it is read.
TEST_F(FileSourceOf, AFileThatHeldMoreThanItsSizeIsNotBelieved) {
  fs::create_symlink("/proc/self/status", path_);
  EXPECT_THAT(refusal().text(), HasSubstr("keeps changing while it is read; write the new"));
}

TEST_F(FileSourceOf, AFileThatEverybodyMayWriteIsRefusedUnlessAllowed) {
  write("one");
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  EXPECT_THAT(refusal().text(), HasSubstr("every user of this machine; chmod o-w " + path_));
  const FileSourceOptions allowed{.limits = {.world_writable = true}, .watch = {}};
  EXPECT_EQ(FileSource(path_, allowed).fetch().value().text, "one");
}

TEST_F(FileSourceOf, AFileThatMayNotBeReadIsNamedWithARemedy) {
  write("one");
  ASSERT_EQ(::chmod(path_.c_str(), 0), 0);
  const auto code = testing::in_child([this] {
    // Root may read everything; nobody may not even enter the folder.
    if (::geteuid() == 0 && ::setuid(65534) != 0) return EXIT_FAILURE;
    const Diagnostic refused = refusal();
    const bool told = refused.message.find("Permission denied") != std::string::npos &&
                      refused.remedy.find("allow this program's user") != std::string::npos;
    return told ? EXIT_SUCCESS : EXIT_FAILURE;
  });
  EXPECT_EQ(code, EXIT_SUCCESS);
}

}  // namespace
}  // namespace sluice::rules
