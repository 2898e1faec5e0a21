#include "cli/file.h"

#include "base/file_descriptor.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace sluice::cli {

Parsed<void> write_file(const std::string& path, std::string_view content) {
  // A device or a pipe is written to; only a file can be replaced.
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  const bool replace = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  const std::string unfinished = replace ? path + ".new" : path;
  const auto failed = [&] {
    const int error = errno;
    if (replace) std::remove(unfinished.c_str());
    return mistake(fmt::format("cannot write {}: {}", path, std::strerror(error)));
  };
  {
    std::ofstream file{unfinished, std::ios::binary | std::ios::trunc};
    if (!file) return failed();
    file << content;
    file.close();
    if (!file) return failed();
  }
  if (replace && std::rename(unfinished.c_str(), path.c_str()) != 0) return failed();
  return {};
}

Parsed<void> create_file(const std::string& path, std::string_view content, bool for_owner_only) {
  // The user's mask takes from it. What everybody may change is not believed later.
  const mode_t mode = for_owner_only ? 0600 : 0664;
  const FileDescriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)};
  if (!file) return mistake(fmt::format("cannot create {}: {}", path, std::strerror(errno)));
  while (!content.empty()) {
    const ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      ::unlink(path.c_str());
      return mistake(fmt::format("cannot write {}: {}", path, std::strerror(error)));
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace sluice::cli
