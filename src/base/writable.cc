#include "base/writable.h"

#include "base/text.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace sluice {
namespace {

constexpr const char* kMayWrite = "let this program's user write there, or name another file";

std::optional<Diagnostic> cannot_write(const std::string& path, const std::string& why,
                                       const char* remedy) {
  return Diagnostic{.message = fmt::format("cannot write {}: {}", sluice::quoted(path), why),
                    .remedy = remedy};
}

bool may(const std::string& path, int what) noexcept {
  return ::faccessat(AT_FDCWD, path.c_str(), what, AT_EACCESS) == 0;
}

}  // namespace

std::optional<Diagnostic> why_not_writable(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return cannot_write(path, "it is a folder", "name a file");
    if (may(path, W_OK)) return std::nullopt;
    return cannot_write(path, std::generic_category().message(errno), kMayWrite);
  }
  if (errno != ENOENT && errno != ENOTDIR) {
    return cannot_write(path, std::generic_category().message(errno), kMayWrite);
  }
  const std::filesystem::path above = std::filesystem::path{path}.parent_path();
  const std::string folder = above.empty() ? std::string{"."} : above.string();
  if (::stat(folder.c_str(), &status) != 0) {
    return cannot_write(path, fmt::format("there is no folder {}", sluice::quoted(folder)),
                        "create it, or name another file");
  }
  if (!S_ISDIR(status.st_mode)) {
    return cannot_write(path, fmt::format("{} is not a folder", sluice::quoted(folder)),
                        "name a file in a folder");
  }
  if (may(folder, W_OK | X_OK)) return std::nullopt;
  return cannot_write(path,
                      fmt::format("no file can be created in {}: {}", sluice::quoted(folder),
                                  std::generic_category().message(errno)),
                      kMayWrite);
}

}  // namespace sluice
