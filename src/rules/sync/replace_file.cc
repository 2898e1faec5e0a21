#include "rules/sync/replace_file.h"

#include "base/file_descriptor.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <utility>

namespace sluice::rules {
namespace {

constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

tl::unexpected<Diagnostic> failed(const std::string& path, int error) {
  const std::string folder = std::filesystem::path{path}.parent_path().string();
  std::string message =
      fmt::format("cannot write {}: {}", path, std::generic_category().message(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT: return mistake(std::move(message), "make room on its disk");
    case EWOULDBLOCK:
      return mistake(std::move(message), "give each process a state folder of its own");
    case ENOENT: return mistake(std::move(message), fmt::format("create the folder {}", folder));
    default:
      return mistake(std::move(message),
                     fmt::format("allow this program's user to write to {}", folder));
  }
}

// Whether the name still leads to the open file.
bool is_still(const std::string& path, int file) {
  struct stat named{};
  struct stat open{};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(file, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

// A file under that name which nobody else writes to. Another writer may have renamed it between
// our opening and our locking: then it is somebody's finished file, and we open another.
tl::expected<FileDescriptor, int> open_locked(const std::string& path) {
  constexpr int kAttempts = 10;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    FileDescriptor file{
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kOwnerOnly)};
    if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return tl::unexpected(errno);
    if (is_still(path, file.get())) return file;
  }
  return tl::unexpected(EWOULDBLOCK);
}

bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Left over from a killed writer, it may hold anything and have any permissions.
bool fill(int file, std::string_view content) {
  return ::ftruncate(file, 0) == 0 && ::fchmod(file, kOwnerOnly) == 0 && write_all(file, content) &&
         ::fsync(file) == 0;
}

bool sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path{path}.parent_path().string();
  const FileDescriptor open{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  return open && ::fsync(open.get()) == 0;
}

}  // namespace

Parsed<void> replace_file(const std::string& path, std::string_view content,
                          const std::function<void()>& before_rename) {
  const std::string unfinished = path + ".new";
  const auto file = open_locked(unfinished);
  if (!file) return failed(path, file.error());
  if (!fill(file->get(), content)) {
    const int error = errno;
    ::unlink(unfinished.c_str());
    return failed(path, error);
  }
  if (before_rename) before_rename();
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) return failed(path, errno);
  if (!sync_folder_of(path)) return failed(path, errno);
  return {};
}

}  // namespace sluice::rules
