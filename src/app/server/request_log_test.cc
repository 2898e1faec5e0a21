#include "app/server/request_log.h"

#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <unistd.h>

namespace sluice::app {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class RequestLogOf : public ::testing::Test {
 protected:
  RequestLogOf() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error{"no pipe"};
    out_ = FileDescriptor{ends[0]};
    in_ = FileDescriptor{ends[1]};
    log_to({.config = {.file = "-"}, .file = LogFile::of(in_.get())});
  }

  void log_to(AccessLogSink log) {
    snapshot_.access_log = std::move(log);
    log_.use(snapshot_);
  }

  void request(const std::string& target) {
    log_.ended({.method = "GET", .target = target, .status = 200}, {});
  }
  std::string read() {
    std::string all;
    std::array<char, 4096> some{};
    for (ssize_t size = 0; (size = ::read(out_.get(), some.data(), some.size())) > 0;) {
      all.append(some.data(), static_cast<std::size_t>(size));
    }
    return all;
  }
  static std::uint64_t lines(const std::string& text) {
    return static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
  }

  FileDescriptor out_;
  FileDescriptor in_;
  ServerSnapshot snapshot_;
  RequestLog log_{0};
};

// Two buffers and a pipe take some; the others are dropped, and nobody waits.
TEST_F(RequestLogOf, EveryLineIsWrittenOrCountedAsDropped) {
  constexpr std::uint64_t kRequests = 10'000;
  bool waits = false;
  for (std::uint64_t i = 0; i < kRequests; ++i) {
    request("/" + std::string(1000, 'a'));
    waits = !log_.flush();
  }
  EXPECT_TRUE(waits);
  const frontend::AccessLog& log = *log_.log();
  EXPECT_GT(log.dropped(), 0U);
  EXPECT_EQ(log.written() + log.dropped(), kRequests);

  std::string all;
  while (!log_.flush()) all += read();
  all += read();
  EXPECT_EQ(lines(all), log.written());
  request("/after");
  EXPECT_TRUE(log_.flush());
  EXPECT_THAT(read(), HasSubstr("/after"));
}

TEST_F(RequestLogOf, AReaderThatIsGoneCostsLinesOnly) {
  (void)std::signal(SIGPIPE, SIG_IGN);  // as servers do
  out_ = FileDescriptor{};
  request("/a");
  EXPECT_TRUE(log_.flush());
  EXPECT_EQ(log_.log()->dropped(), 1U);
  EXPECT_EQ(log_.log()->written(), 0U);
}

TEST_F(RequestLogOf, TheLogCanGoElsewhereInAnotherForm) {
  const testing::TempFolder folder;
  const std::string path = folder.file("log");
  request("/a");
  log_to(open_access_log({.file = path, .json = true}).value());
  request("/b");
  EXPECT_TRUE(log_.flush());
  EXPECT_THAT(read(), HasSubstr("/a"));
  std::ifstream stream{path};
  const std::string written(std::istreambuf_iterator<char>{stream}, {});
  EXPECT_THAT(written, HasSubstr(R"("target":"/b")"));
  EXPECT_THAT(written, Not(HasSubstr("/a")));
  EXPECT_EQ(log_.log()->written(), 2U);
}

// A second object for the same file would not know of a line that the first has still to finish.
TEST_F(RequestLogOf, AFileThatIsOpenAlreadyIsShared) {
  const testing::TempFolder folder;
  const std::string path = folder.file("log");
  const AccessLogSink before = open_access_log({.file = path}).value();
  const AccessLogSink again = open_access_log({.file = path, .json = true}, before).value();
  EXPECT_EQ(again.file, before.file);
  EXPECT_TRUE(again.config.json);
  std::filesystem::rename(path, folder.file("log.1"));
  EXPECT_NE(open_access_log({.file = path}, before).value().file, before.file);
}

TEST_F(RequestLogOf, TheLogCanBeSwitchedOffAndOn) {
  log_to({.config = {}, .file = nullptr});
  request("/quiet");
  EXPECT_TRUE(log_.flush());
  log_to({.config = {.file = "-"}, .file = LogFile::of(in_.get())});
  request("/heard");
  EXPECT_TRUE(log_.flush());
  const std::string heard = read();
  EXPECT_THAT(heard, HasSubstr("/heard"));
  EXPECT_THAT(heard, Not(HasSubstr("/quiet")));
}

}  // namespace
}  // namespace sluice::app
