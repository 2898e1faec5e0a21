#include "base/folder.h"

#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace sluice {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

std::vector<std::string> paths_below(const fs::path& folder) {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : visible_below(folder).entries) {
    paths.push_back(entry.path().lexically_relative(folder).string());
  }
  return paths;
}

// As a mounted ConfigMap looks, with a folder beside it.
TEST(Folder, ShowsAllBelowItButWhatIsHidden) {
  const testing::TempFolder temporary;
  const fs::path folder{temporary.file("config")};
  fs::create_directories(folder / "..2024" / "deep");
  fs::create_directories(folder / "below");
  std::ofstream{folder / "..2024" / "a"} << "a";
  std::ofstream{folder / "below" / "b"} << "b";
  std::ofstream{folder / "below" / ".hidden"} << "h";
  fs::create_directory_symlink("..2024", folder / "..data");
  fs::create_symlink("..data/a", folder / "a");
  fs::create_symlink("nowhere", folder / "broken");
  fs::create_directory_symlink(".", folder / "round");
  EXPECT_THAT(paths_below(folder), ElementsAre("a", "below", "below/b", "broken", "round"));
}

TEST(Folder, IsAnErrorWhereThereIsNone) {
  const testing::TempFolder temporary;
  const FolderContent content = visible_below(temporary.file("none"));
  EXPECT_EQ(content.error, std::errc::no_such_file_or_directory);
  EXPECT_TRUE(content.entries.empty());
}

}  // namespace
}  // namespace sluice
