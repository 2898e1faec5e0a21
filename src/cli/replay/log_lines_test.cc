#include "cli/replay/log_lines.h"

#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <zlib.h>

namespace sluice::cli {
namespace {

using ::testing::HasSubstr;

class LogLines : public ::testing::Test {
 protected:
  // Appends one member.
  void pack(const std::string& text) const {
    const gzFile file = ::gzopen(path_.c_str(), "ab");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(::gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
              static_cast<int>(text.size()));
    ASSERT_EQ(::gzclose(file), Z_OK);
  }
  void write(const std::string& bytes) const {
    std::ofstream{path_, std::ios::binary | std::ios::trunc} << bytes;
  }
  [[nodiscard]] std::string bytes() const {
    std::ifstream file{path_, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  // All lines, or what is wrong.
  [[nodiscard]] std::string read() const {
    auto lines = open_log_lines(path_);
    if (!lines) return lines.error().text();
    std::string all;
    while (true) {
      const auto line = lines->next();
      if (!line) return line.error().text();
      if (!*line) return all;
      all += std::string{**line} + "|";
    }
  }

  testing::TempFolder folder_;
  const std::string path_ = folder_.file("access.log.gz");
};

TEST_F(LogLines, OfPlainTextComeAsTheyAre) {
  write("one\ntwo\n");
  EXPECT_EQ(read(), "one|two|");
  write("1");
  EXPECT_EQ(read(), "1|");
  write("");
  EXPECT_EQ(read(), "");
}

TEST_F(LogLines, OfGzipAreUnpackedAcrossMembers) {
  pack("one\ntw");
  pack("o\n");
  pack("");
  pack("three\n");
  EXPECT_EQ(read(), "one|two|three|");
}

// Much more than is held at a time.
TEST_F(LogLines, OfALargeFileAreAllThere) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += std::to_string(i) + "\n";
  pack(text);
  auto lines = open_log_lines(path_);
  ASSERT_TRUE(lines);
  for (int i = 0; i < 300'000; ++i) {
    const auto line = lines->next();
    ASSERT_TRUE(line && *line) << i;
    ASSERT_EQ(**line, std::to_string(i));
  }
  EXPECT_FALSE(lines->next().value());
}

TEST_F(LogLines, OfAFileThatIsCutOffEndWithAnError) {
  pack("one\ntwo\n");
  const std::string whole = bytes();
  for (const std::size_t size : {std::size_t{2}, std::size_t{12}, whole.size() - 1}) {
    write(whole.substr(0, size));
    EXPECT_THAT(read(), HasSubstr("is cut off: its compressed data ends too early")) << size;
  }
}

TEST_F(LogLines, OfAFileThatIsDamagedEndWithAnError) {
  pack("one\ntwo\n");
  std::string damaged = bytes();
  damaged[damaged.size() - 6] ^= 1;  // of its checksum
  write(damaged);
  EXPECT_THAT(read(), HasSubstr("access.log.gz is damaged"));
  pack("");
  write(bytes() + "garbage");
  EXPECT_THAT(read(), HasSubstr("is damaged"));
}

}  // namespace
}  // namespace sluice::cli
