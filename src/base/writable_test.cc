#include "base/writable.h"

#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(WhyNotWritable, IsSilentWhereAFileCanBeWrittenAndCreatesNone) {
  const testing::TempFolder folder;
  EXPECT_FALSE(why_not_writable(folder.file("new")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("new")));
  std::ofstream{folder.file("old")} << "content";
  EXPECT_FALSE(why_not_writable(folder.file("old")));
  EXPECT_EQ(std::filesystem::file_size(folder.file("old")), 7U);
}

TEST(WhyNotWritable, NamesWhatIsInTheWay) {
  const testing::TempFolder folder;
  std::ofstream{folder.file("file")} << "content";
  const auto why = [&](const std::string& name) {
    return why_not_writable(folder.file(name)).value_or(Diagnostic{}).text();
  };
  EXPECT_THAT(why("missing/file"), HasSubstr("there is no folder"));
  EXPECT_THAT(why("file/file"), HasSubstr("is not a folder"));
  EXPECT_THAT(why(""), HasSubstr("it is a folder"));
}

}  // namespace
}  // namespace sluice
