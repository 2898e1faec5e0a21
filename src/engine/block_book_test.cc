#include "engine/block_book.h"

#include "base/mapped_files.h"
#include "support/child.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow{1'700'000'000s};

BlockNote note(std::uint64_t block) {
  return {.block = block,
          .refusals = block + 1,
          .since = kNow,
          .until = kNow + 1h,
          .rule = "login",
          .label = "ip=192.0.2.1"};
}

class BlockBookTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string file() const { return folder_.file("blocks"); }

  void overwrite(std::size_t at, std::string_view bytes) const {
    std::fstream stream{file(), std::ios::binary | std::ios::in | std::ios::out};
    stream.seekp(static_cast<std::streamoff>(at));
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  testing::TempFolder folder_;
};

// What the power leaves of a file that was made a moment before: its size.
TEST_F(BlockBookTest, TakesAFileOfZerosForANewOne) {
  (void)BlockBook::open(file()).value();
  const auto size = std::filesystem::file_size(file());
  std::filesystem::remove(file());
  std::ofstream{file()}.flush();
  std::filesystem::resize_file(file(), size);

  const auto book = BlockBook::open(file());
  ASSERT_TRUE(book) << book.error().text();
  (*book)->write(note(7), kNow);
  EXPECT_EQ(BlockBook::open(file()).value()->list(kNow).size(), 1U);
}

// Two threads that find the same line free must not both take it: the name of one block would be
// lost, and nobody would hear of it. All blocks of a round may use the same lines. The threads spin
// between rounds, so that they write at the same moment.
TEST_F(BlockBookTest, NoNameIsLostUnnoticedWhereThreadsWriteAtOnce) {
  constexpr std::uint64_t kThreads = 2;
  constexpr std::uint64_t kEach = 8;
  constexpr int kRounds = 2000;
  const auto book = BlockBook::open({}).value();
  std::atomic<int> round{-1};
  std::atomic<std::uint64_t> finished{0};
  std::atomic<std::uint64_t> displaced{0};
  const auto write_all = [&](std::uint64_t thread) {
    for (int mine = 0; mine < kRounds; ++mine) {
      while (round.load() < mine) std::this_thread::yield();
      const WallTime now = kNow + mine * 2h;  // the blocks of the round before have ended
      for (std::uint64_t n = 0; n < kEach; ++n) {
        BlockNote one = note(1 + (thread * kEach + n) * BlockBook::kLines);
        one.until = now + 1h;
        if (book->write(one, now)) ++displaced;
      }
      ++finished;
    }
  };
  std::vector<std::jthread> writers;
  for (std::uint64_t i = 0; i < kThreads; ++i) writers.emplace_back(write_all, i);
  int rounds_with_losses = 0;
  for (int now = 0; now < kRounds; ++now) {
    round = now;
    while (finished.load() < kThreads) std::this_thread::yield();
    finished = 0;
    const std::uint64_t named = book->list(kNow + now * 2h).size();
    if (named + displaced.exchange(0) != kThreads * kEach) ++rounds_with_losses;
  }
  EXPECT_EQ(rounds_with_losses, 0);
}

// The process ends by SIGBUS, and names the file before.
TEST_F(BlockBookTest, IsNamedWhenItIsTruncatedWhileItIsInUse) {
  const auto end = testing::end_of_child([&] {
    explain_lost_files();
    const auto book = BlockBook::open(file()).value();
    std::filesystem::resize_file(file(), 0);
    book->write(note(7), kNow);
    return 2;  // it should not have come that far
  });
  EXPECT_TRUE(end.is_by(SIGBUS)) << end.status;
  EXPECT_EQ(end.said, "sluice: file of blocks '" + file() +
                          "': it was truncated, or its device failed, while it was in use; remove "
                          "it and start again; blocks hold without it\n");
}

TEST_F(BlockBookTest, RefusesAFileOfAnotherKind) {
  BlockBook::open(file()).value()->write(note(7), kNow);
  overwrite(0, std::string(8, '\0'));
  const auto without_its_mark = BlockBook::open(file());
  ASSERT_FALSE(without_its_mark) << "it is not empty";
  EXPECT_NE(without_its_mark.error().message.find("is not a file of blocks"), std::string::npos);
  overwrite(0, "SOMETHING");
  EXPECT_FALSE(BlockBook::open(file()));
  std::filesystem::resize_file(file(), 100);
  EXPECT_FALSE(BlockBook::open(file()));
}

// As open() would judge it, and nothing is made or changed by looking.
TEST_F(BlockBookTest, IsInspectedWithoutBeingTouched) {
  EXPECT_FALSE(BlockBook::inspect(file()));
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_TRUE(BlockBook::inspect(folder_.file("missing/blocks")));
  EXPECT_TRUE(BlockBook::inspect(folder_.file(""))) << "a folder";

  BlockBook::open(file()).value()->write(note(7), kNow);
  EXPECT_FALSE(BlockBook::inspect(file()));
  const auto size = std::filesystem::file_size(file());
  overwrite(0, "SOMETHING");
  const auto other = BlockBook::inspect(file());
  ASSERT_TRUE(other);
  EXPECT_EQ(other->text(), BlockBook::open(file()).error().text());
  std::filesystem::resize_file(file(), 100);
  EXPECT_TRUE(BlockBook::inspect(file()));
  std::filesystem::resize_file(file(), 0);
  EXPECT_FALSE(BlockBook::inspect(file())) << "a new one";
  std::filesystem::resize_file(file(), size);
  EXPECT_FALSE(BlockBook::inspect(file())) << "zeros are a new one as well";
  EXPECT_EQ(std::filesystem::file_size(file()), size);
}

}  // namespace
}  // namespace sluice::engine
