#include "app/server/log_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace sluice::app {
namespace {

constexpr int kHow = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
// Room for the rest of the longest line of an access log.
constexpr std::size_t kRestBytes = 32U << 10U;

// As many lines as a pipe takes atomically; a longer line alone.
std::size_t pipe_piece_of(std::string_view lines) noexcept {
  if (lines.size() <= PIPE_BUF) return lines.size();
  const std::size_t last = lines.rfind('\n', PIPE_BUF - 1);
  if (last != std::string_view::npos) return last + 1;
  const std::size_t first = lines.find('\n');
  return first == std::string_view::npos ? lines.size() : first + 1;
}

// The end of the line that continues at `from`.
std::size_t end_of_line(std::string_view lines, std::size_t from) noexcept {
  if (lines[from - 1] == '\n') return from;
  const std::size_t end = lines.find('\n', from);
  return end == std::string_view::npos ? lines.size() : end + 1;
}

FileDescriptor duplicate(int descriptor) noexcept {
  return FileDescriptor{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)};
}

}  // namespace

LogFile::LogFile(FileDescriptor descriptor, Kind kind)
    : descriptor_(std::move(descriptor)), kind_(kind) {
  rest_.reserve(kRestBytes);
}

std::unique_ptr<LogFile> LogFile::open(const std::string& file) {
  if (file == "-") return of(STDOUT_FILENO);
  FileDescriptor opened{::open(file.c_str(), kHow | O_CREAT, 0640)};
  struct stat about{};
  if (!opened || ::fstat(opened.get(), &about) != 0) return nullptr;
  const Kind kind = S_ISREG(about.st_mode) ? Kind::file : Kind::ours;
  std::unique_ptr<LogFile> log{new LogFile{std::move(opened), kind}};
  if (kind == Kind::file && about.st_size > 0) log->end_last_line(file);
  return log;
}

// If the file may not be read, its last line stays as it is.
void LogFile::end_last_line(const std::string& file) {
  const FileDescriptor reading{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat about{};
  char last = '\n';
  if (!reading || ::fstat(reading.get(), &about) != 0 ||
      ::pread(reading.get(), &last, 1, about.st_size - 1) != 1) {
    return;
  }
  if (last != '\n') rest_ = "\n";
}

std::unique_ptr<LogFile> LogFile::of(int descriptor) {
  struct stat about{};
  if (::fstat(descriptor, &about) != 0) return nullptr;
  const bool is_file = S_ISREG(about.st_mode);
  const bool is_socket = S_ISSOCK(about.st_mode);
  Kind kind = is_file ? Kind::file : is_socket ? Kind::socket : Kind::shared;
  FileDescriptor taken;
  if (kind == Kind::shared) {
    taken = FileDescriptor{::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(), kHow)};
    if (taken) kind = Kind::ours;
  }
  if (!taken) taken = duplicate(descriptor);
  if (!taken) return nullptr;
  return std::unique_ptr<LogFile>{new LogFile{std::move(taken), kind}};
}

bool LogFile::is_open_at(const std::string& file) const noexcept {
  struct stat open{};
  struct stat found{};
  if (::fstat(descriptor_.get(), &open) != 0) return false;
  const int result = file == "-" ? ::fstat(STDOUT_FILENO, &found) : ::stat(file.c_str(), &found);
  return result == 0 && open.st_dev == found.st_dev && open.st_ino == found.st_ino;
}

LogFile::Written LogFile::write(std::string_view lines) noexcept {
  const std::lock_guard guard{mutex_};
  std::size_t taken = 0;
  while (true) {
    const std::optional<bool> finished = finish_line();
    if (!finished) return {.bytes = taken, .failed = true};
    if (!*finished || taken == lines.size()) return {.bytes = taken};
    const std::string_view left = lines.substr(taken);
    const std::string_view piece = kind_ == Kind::file ? left : left.substr(0, pipe_piece_of(left));
    const std::optional<std::size_t> written = write_some(piece);
    if (!written) return {.bytes = taken, .failed = true};
    if (*written == 0) return {.bytes = taken};
    const std::size_t end = end_of_line(piece, *written);
    rest_.assign(piece.substr(*written, end - *written));
    taken += end;
  }
}

LogFile::Written LogFile::write_within(std::string_view lines, Nanos patience) noexcept {
  Written written;
  while (true) {
    const Written now = write(lines.substr(written.bytes));
    written = {.bytes = written.bytes + now.bytes, .failed = now.failed};
    const std::lock_guard guard{mutex_};
    const bool is_done = written.bytes == lines.size() && rest_.empty();
    if (written.failed || is_done || waited_ >= patience) return written;
    const auto begin = std::chrono::steady_clock::now();
    const bool is_ready = is_ready_within(patience - waited_);
    waited_ = is_ready ? waited_ + (std::chrono::steady_clock::now() - begin) : patience;
  }
}

// Writes without blocking, perhaps nothing. No result: no write can succeed.
std::optional<std::size_t> LogFile::write_some(std::string_view text) const noexcept {
  const int descriptor = descriptor_.get();
  ssize_t written = 0;
  do {
    if (kind_ == Kind::socket) {
      written = ::send(descriptor, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (kind_ == Kind::ours || kind_ == Kind::file) {
      written = ::write(descriptor, text.data(), text.size());
    } else if (is_ready_within(Nanos{0})) {
      // A pipe that is ready takes this much without blocking.
      written = ::write(descriptor, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    } else {
      return 0;
    }
  } while (written < 0 && errno == EINTR);
  if (written >= 0) return static_cast<std::size_t>(written);
  if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
  return std::nullopt;
}

// Whether the line is complete. A disk may have room again; a reader that is gone never returns.
std::optional<bool> LogFile::finish_line() noexcept {
  while (!rest_.empty()) {
    const std::optional<std::size_t> written = write_some(rest_);
    if (!written) {
      if (kind_ != Kind::file) rest_.clear();
      return std::nullopt;
    }
    if (*written == 0) return false;
    rest_.erase(0, *written);
  }
  return true;
}

bool LogFile::is_ready_within(Nanos time) const noexcept {
  pollfd one{.fd = descriptor_.get(), .events = POLLOUT, .revents = 0};
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(time);
  return ::poll(&one, 1, static_cast<int>(wait.count())) > 0;
}

}  // namespace sluice::app
