#include "rules/source/path_chain.h"

#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace sluice::rules {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Not;

class PathChainOf : public ::testing::Test {
 protected:
  [[nodiscard]] std::string file(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name) const { std::ofstream{file(name)} << "x"; }

  testing::TempFolder temporary_;
  const std::string folder_ = fs::canonical(temporary_.file(".")).string();
};

TEST_F(PathChainOf, APlainFileIsAllItsFolders) {
  write("rules");
  const PathChain chain = path_chain(file("rules"));
  EXPECT_EQ(chain.file, file("rules"));
  EXPECT_EQ(chain.last_folder, folder_);
  EXPECT_THAT(chain.names.at(folder_), ElementsAre("rules"));
  EXPECT_THAT(chain.names, Contains(Key("/")));
}

TEST_F(PathChainOf, AMissingFolderEndsWhereItIsMissing) {
  const PathChain chain = path_chain(file("a/b/rules"));
  EXPECT_EQ(chain.file, "");
  EXPECT_THAT(chain.names.at(folder_), ElementsAre("a"));
  EXPECT_THAT(chain.names, Not(Contains(Key(file("a")))));
}

// rules -> ..data/rules, ..data -> ..1, and the file in ..1.
TEST_F(PathChainOf, AKubernetesVolumeIsItsLinksAndItsFile) {
  fs::create_directory(file("..1"));
  write("..1/rules");
  fs::create_directory_symlink("..1", file("..data"));
  fs::create_symlink("..data/rules", file("rules"));
  const PathChain chain = path_chain(file("rules"));
  EXPECT_EQ(chain.file, file("..1/rules"));
  EXPECT_THAT(chain.names.at(folder_), ElementsAre("..1", "..data", "rules"));
  EXPECT_THAT(chain.names.at(file("..1")), ElementsAre("rules"));
}

// The parent of a linked folder is where the folder is, not where the link is.
TEST_F(PathChainOf, TwoDotsLeaveTheFolderALinkLedTo) {
  fs::create_directories(file("far/away"));
  write("far/rules");
  fs::create_directory_symlink(file("far/away"), file("near"));
  const PathChain chain = path_chain(file("near/../rules"));
  EXPECT_EQ(chain.file, file("far/rules"));
}

TEST_F(PathChainOf, LinksThatLeadInACircleEnd) {
  fs::create_symlink("b", file("a"));
  fs::create_symlink("a", file("b"));
  const PathChain chain = path_chain(file("a"));
  EXPECT_EQ(chain.file, "");
  EXPECT_THAT(chain.names.at(folder_), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace sluice::rules
