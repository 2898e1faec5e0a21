#include "app/server/log_line.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

namespace sluice::app {
namespace {

using namespace std::chrono_literals;

// 2026-01-01T00:00:00Z
constexpr WallTime kNow{1'767'225'600s};

TEST(LogLine, HasItsTimeAndLevel) {
  EXPECT_EQ(log_lines(LogForm::plain, LogLevel::warning, kNow, "app: no answer"),
            "2026-01-01T00:00:00.000Z warning app: no answer\n");
  EXPECT_EQ(log_lines(LogForm::plain, LogLevel::info, kNow + 7'999'999ns, "stopped"),
            "2026-01-01T00:00:00.007Z info stopped\n");
}

TEST(LogLine, OfSeveralEachHasThem) {
  EXPECT_EQ(log_lines(LogForm::plain, LogLevel::error, kNow, "wrong:\n\na.yaml:1:2: x\n"),
            "2026-01-01T00:00:00.000Z error wrong:\n"
            "2026-01-01T00:00:00.000Z error a.yaml:1:2: x\n");
}

TEST(LogLine, HasAPriorityForTheJournal) {
  EXPECT_EQ(log_lines(LogForm::journal, LogLevel::error, kNow, "a\nb"), "<3>a\n<3>b\n");
  EXPECT_EQ(log_lines(LogForm::journal, LogLevel::warning, kNow, "a"), "<4>a\n");
  EXPECT_EQ(log_lines(LogForm::journal, LogLevel::info, kNow, "a"), "<6>a\n");
}

// A child of a service may write elsewhere.
TEST(LogLine, KnowsTheJournalByItsStream) {
  struct stat about{};
  ASSERT_EQ(::fstat(STDERR_FILENO, &about), 0);
  const std::string stream = fmt::format("{}:{}", about.st_dev, about.st_ino);
  EXPECT_TRUE(reaches_journal(STDERR_FILENO, stream.c_str()));
  EXPECT_FALSE(reaches_journal(STDERR_FILENO, (stream + "1").c_str()));
  EXPECT_FALSE(reaches_journal(STDERR_FILENO, nullptr));
}

}  // namespace
}  // namespace sluice::app
