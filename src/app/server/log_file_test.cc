#include "app/server/log_file.h"

#include "support/temp_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace sluice::app {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::SizeIs;

constexpr uid_t kNobody = 65'534;

// Two ends: what is written to one can be read from the other.
struct Ends {
  FileDescriptor out;
  FileDescriptor in;
};
Ends pipe_ends() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error{"no pipe"};
  return {.out = FileDescriptor{ends[0]}, .in = FileDescriptor{ends[1]}};
}
Ends socket_ends() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::runtime_error{"no sockets"};
  }
  return {.out = FileDescriptor{ends[0]}, .in = FileDescriptor{ends[1]}};
}

// What is there now.
std::string read_all(const FileDescriptor& end) {
  ::fcntl(end.get(), F_SETFL, O_NONBLOCK);
  std::string all;
  std::array<char, 4096> some{};
  for (ssize_t size = 0; (size = ::read(end.get(), some.data(), some.size())) > 0;) {
    all.append(some.data(), static_cast<std::size_t>(size));
  }
  return all;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream{text};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string many_lines(std::size_t count, std::size_t length) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += std::string(length - 1, 'a') + "\n";
  return all;
}

// Of these, no call returns before somebody reads, unless it is told not to wait.
class LogFileOf : public ::testing::TestWithParam<bool> {
 protected:
  Ends ends_ = GetParam() ? socket_ends() : pipe_ends();
  std::unique_ptr<LogFile> file_ = LogFile::of(ends_.in.get());
};
INSTANTIATE_TEST_SUITE_P(APipeAndASocket, LogFileOf, ::testing::Bool());

TEST_P(LogFileOf, NobodyReadsAndNobodyWaits) {
  const std::string lines = many_lines(20'000, 100);
  const LogFile::Written first = file_->write(lines);
  EXPECT_GT(first.bytes, 0U);
  EXPECT_LT(first.bytes, lines.size());
  EXPECT_EQ(first.bytes % 100, 0U) << "a line was torn";
  EXPECT_FALSE(first.failed);
  EXPECT_EQ(file_->write(lines).bytes, 0U);
}

TEST_P(LogFileOf, WhoReadsGetsWholeLinesInOrder) {
  std::string all;
  std::string read;
  for (int i = 0; i < 3000; ++i) all += fmt::format("{:>{}}\n", i, 1 + i % 9000);
  for (std::string_view left = all; !left.empty();) {
    left.remove_prefix(file_->write(left).bytes);
    read += read_all(ends_.out);
  }
  while (read.size() < all.size()) {
    ASSERT_FALSE(file_->write({}).failed);  // what is left of a line
    read += read_all(ends_.out);
  }
  EXPECT_EQ(read, all);
}

TEST_P(LogFileOf, LinesOfSeveralThreadsDoNotMix) {
  constexpr int kThreads = 4;
  std::vector<std::jthread> writers;
  for (int i = 0; i < kThreads; ++i) {
    writers.emplace_back([this, i] {
      const std::string line(5000, static_cast<char>('a' + i));
      for (int n = 0; n < 50;) n += file_->write(line + "\n").bytes > 0 ? 1 : 0;
    });
  }
  std::string read;
  while (read.size() < kThreads * 50 * 5001U) {
    (void)file_->write({});
    read += read_all(ends_.out);
  }
  const std::vector<std::string> lines = lines_of(read);
  EXPECT_THAT(lines, SizeIs(kThreads * 50));
  EXPECT_THAT(lines, Each(SizeIs(5000)));
  for (const std::string& line : lines) {
    EXPECT_EQ(line, std::string(5000, line.front())) << "two lines in one";
  }
}

TEST_P(LogFileOf, AReaderThatIsGoneIsAFailure) {
  (void)std::signal(SIGPIPE, SIG_IGN);  // as servers do
  ends_.out = FileDescriptor{};
  EXPECT_TRUE(file_->write("a line\n").failed);
}

TEST_P(LogFileOf, TheOthersAtThatEndNoticeNothing) {
  EXPECT_EQ(::fcntl(ends_.in.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_P(LogFileOf, AtTheEndAReaderHasALittleTimeAndOnlyOnce) {
  const std::string lines = many_lines(20'000, 100);
  EXPECT_LT(file_->write_within(lines, 20ms).bytes, lines.size());
  EXPECT_EQ(file_->write_within(lines, 20ms).bytes, 0U);  // at once, for the next worker
  const auto again = LogFile::of(ends_.in.get());
  std::string read;
  std::jthread reader{[&](const std::stop_token& stop) {
    while (!stop.stop_requested()) read += read_all(ends_.out);
  }};
  EXPECT_EQ(again->write_within(lines, 1h).bytes, lines.size());
}

// As where the pipe belongs to another user: it cannot be opened once more.
TEST(LogFile, APipeThatCannotBeOpenedAgainIsAskedFirst) {
  const Ends ends = pipe_ends();
  ASSERT_EQ(::fchmod(ends.in.get(), 0), 0);
  const int before = ::setfsuid(kNobody);  // of this thread; root may open everything
  const auto file = LogFile::of(ends.in.get());
  ::setfsuid(static_cast<uid_t>(before));
  const std::string lines = many_lines(20, 10'000);
  const LogFile::Written written = file->write(lines);
  EXPECT_GT(written.bytes, 0U);
  EXPECT_LT(written.bytes, lines.size());
  std::string read = read_all(ends.out);
  while (!file->write({}).failed && read.size() < written.bytes) read += read_all(ends.out);
  EXPECT_EQ(read, lines.substr(0, written.bytes));
}

TEST(LogFile, AFileTakesEverything) {
  const testing::TempFolder folder;
  const std::string path = folder.file("log");
  const auto file = LogFile::open(path);
  const std::string lines = many_lines(20'000, 100);
  EXPECT_EQ(file->write(lines).bytes, lines.size());
  EXPECT_EQ(LogFile::open(path)->write("more\n").bytes, 5U);
  std::ifstream stream{path};
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>{stream}, {}), lines + "more\n");
}

TEST(LogFile, AFullDiskIsAFailure) {
  const auto full = LogFile::open("/dev/full");
  EXPECT_TRUE(full->write("a line\n").failed);
}

// Stands for a disk: no file grows beyond so many bytes for as long as it lives.
class DiskOf {
 public:
  explicit DiskOf(rlim_t bytes) {
    (void)std::signal(SIGXFSZ, SIG_IGN);
    if (::getrlimit(RLIMIT_FSIZE, &before_) != 0) std::abort();
    const rlimit most{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    if (::setrlimit(RLIMIT_FSIZE, &most) != 0) std::abort();
  }
  DiskOf(const DiskOf&) = delete;
  DiskOf& operator=(const DiskOf&) = delete;
  ~DiskOf() { (void)::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

std::string content_of(const std::string& path) {
  std::ifstream stream{path};
  return std::string(std::istreambuf_iterator<char>{stream}, {});
}

TEST(LogFile, ALineThatAFullDiskHasTornIsFinishedBeforeTheNext) {
  const testing::TempFolder folder;
  const std::string path = folder.file("log");
  const auto file = LogFile::open(path);
  {
    const DiskOf disk{15};
    const LogFile::Written torn = file->write("first line\nsecond\nthird\n");
    EXPECT_TRUE(torn.failed);
    EXPECT_EQ(torn.bytes, 18U) << "the second is finished later, the third is lost";
    const LogFile::Written still = file->write("fourth\n");
    EXPECT_TRUE(still.failed);
    EXPECT_EQ(still.bytes, 0U);
  }
  EXPECT_EQ(file->write("fifth\n").bytes, 6U);
  EXPECT_EQ(content_of(path), "first line\nsecond\nfifth\n");
}

// As after a rename: what stays of the torn line does not come into the next file.
TEST(LogFile, ATornLineIsFinishedInTheFileWhereItBegan) {
  const testing::TempFolder folder;
  const std::string path = folder.file("log");
  auto file = LogFile::open(path);
  {
    const DiskOf disk{15};
    EXPECT_TRUE(file->write("first line\nsecond\n").failed);
  }
  std::filesystem::rename(path, folder.file("log.1"));
  EXPECT_FALSE(file->is_open_at(path));
  const auto next = LogFile::open(path);
  EXPECT_FALSE(file->is_open_at(path));
  EXPECT_EQ(next->write("third\n").bytes, 6U);
  file = nullptr;
  EXPECT_EQ(content_of(folder.file("log.1")), "first line\nsecond\n");
  EXPECT_EQ(content_of(path), "third\n");
}

TEST(LogFile, KnowsWhetherAPathLeadsToIt) {
  const testing::TempFolder folder;
  const std::string path = folder.file("log");
  const auto file = LogFile::open(path);
  EXPECT_TRUE(file->is_open_at(path));
  EXPECT_FALSE(file->is_open_at("-"));
  EXPECT_TRUE(LogFile::open("-")->is_open_at("-"));
  std::filesystem::create_symlink(path, folder.file("link"));
  EXPECT_TRUE(file->is_open_at(folder.file("link")));
  std::filesystem::remove(path);
  EXPECT_FALSE(file->is_open_at(path));
}

TEST(LogFile, ALineThatAnEarlierProcessHasTornIsEnded) {
  const testing::TempFolder folder;
  const std::string path = folder.file("log");
  std::ofstream{path} << "whole\nhalf of a li";
  EXPECT_EQ(LogFile::open(path)->write("next\n").bytes, 5U);
  EXPECT_EQ(LogFile::open(path)->write("another\n").bytes, 8U);
  EXPECT_EQ(content_of(path), "whole\nhalf of a li\nnext\nanother\n");
}

TEST(LogFile, ANamedPipeThatNobodyReadsDoesNotBlockTheStart) {
  const testing::TempFolder folder;
  const std::string path = folder.file("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(LogFile::open(path), nullptr);
  EXPECT_EQ(errno, ENXIO);
}

}  // namespace
}  // namespace sluice::app
