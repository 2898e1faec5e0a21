#include "app/server/log_line.h"

#include "base/rfc3339.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sys/stat.h>

namespace sluice::app {
namespace {

// Always three digits, so that columns align.
std::string log_time(WallTime now) {
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(now - second).count();
  std::string text = format_rfc3339(second);
  text.pop_back();  // Z
  return fmt::format("{}.{:03}Z", text, millis);
}

// As syslog numbers them.
int priority_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::error: return 3;
    case LogLevel::warning: return 4;
    case LogLevel::info: break;
  }
  return 6;
}

}  // namespace

std::string_view name_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::error: return "error";
    case LogLevel::warning: return "warning";
    case LogLevel::info: break;
  }
  return "info";
}

std::string log_lines(LogForm form, LogLevel level, WallTime now, std::string_view text) {
  const std::string prefix = form == LogForm::journal
                                 ? fmt::format("<{}>", priority_of(level))
                                 : fmt::format("{} {} ", log_time(now), name_of(level));
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) lines += fmt::format("{}{}\n", prefix, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool reaches_journal(int descriptor, const char* stream) {
  struct stat about{};
  return stream != nullptr && ::fstat(descriptor, &about) == 0 &&
         fmt::format("{}:{}", about.st_dev, about.st_ino) == stream;
}

}  // namespace sluice::app
