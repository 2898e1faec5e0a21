#include "base/replace_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <utility>

namespace sluice {
namespace {

constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;
constexpr mode_t kPermissions = S_IRWXU | S_IRWXG | S_IRWXO;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path{path}.parent_path().string();
  return folder.empty() ? "." : folder;
}

tl::unexpected<Diagnostic> failed(const std::string& path, int error) {
  const std::string folder = folder_of(path);
  std::string message =
      fmt::format("cannot write {}: {}", path, std::generic_category().message(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT: return mistake(std::move(message), "make room on its disk");
    case EWOULDBLOCK:
      return mistake(std::move(message),
                     "another process writes it: give each a folder of its own");
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

// A file under that name without another writer. Another writer may have renamed it between our
// opening and our locking: then it is a finished file, and we open another. That writer has made
// progress meanwhile, so the loop ends.
tl::expected<FileDescriptor, int> open_locked(const std::string& path, WhenBusy when_busy) {
  constexpr int kAttempts = 1000;
  const int lock = when_busy == WhenBusy::wait ? LOCK_EX : LOCK_EX | LOCK_NB;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    FileDescriptor file{
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kOwnerOnly)};
    if (!file || ::flock(file.get(), lock) != 0) return tl::unexpected(errno);
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

// Left over from a killed writer, it may hold anything and have any permissions. Those of the file
// that it replaces are given to it before there is anything in it to read.
bool fill(int file, std::string_view content, const struct stat* access) {
  if (::ftruncate(file, 0) != 0 || ::fchmod(file, kOwnerOnly) != 0) return false;
  if (access != nullptr && (::fchown(file, access->st_uid, access->st_gid) != 0 ||
                            ::fchmod(file, access->st_mode & kPermissions) != 0)) {
    return false;
  }
  return write_all(file, content) && ::fsync(file) == 0;
}

bool sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  const FileDescriptor open{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  return open && ::fsync(open.get()) == 0;
}

}  // namespace

FileReplacement::FileReplacement(std::string path, FileDescriptor file)
    : path_(std::move(path)), unfinished_(path_ + ".new"), file_(std::move(file)) {}

FileReplacement::~FileReplacement() {
  if (file_) ::unlink(unfinished_.c_str());
}

Parsed<FileReplacement> FileReplacement::begin(std::string path, WhenBusy when_busy) {
  auto file = open_locked(path + ".new", when_busy);
  if (!file) return failed(path, file.error());
  return FileReplacement{std::move(path), *std::move(file)};
}

Parsed<void> FileReplacement::finish(std::string_view content, FileAccess access,
                                     const std::function<void()>& before_rename) {
  struct stat old{};
  const bool keep = access == FileAccess::as_before && ::stat(path_.c_str(), &old) == 0;
  if (!fill(file_.get(), content, keep ? &old : nullptr)) return failed(path_, errno);
  if (before_rename) before_rename();
  if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) return failed(path_, errno);
  file_ = FileDescriptor{};
  if (!sync_folder_of(path_)) return failed(path_, errno);
  return {};
}

Parsed<void> replace_file(const std::string& path, std::string_view content,
                          const std::function<void()>& before_rename) {
  Parsed<FileReplacement> replacement = FileReplacement::begin(path, WhenBusy::refuse);
  if (!replacement) return tl::unexpected(std::move(replacement.error()));
  return replacement->finish(content, FileAccess::owner, before_rename);
}

}  // namespace sluice
