#include "base/read_file.h"

#include "base/text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sys/stat.h>

namespace sluice {
namespace {

struct Close {
  void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, Close>;

Parsed<OpenFile> open_file(const std::string& path) {
  OpenFile file{std::fopen(path.c_str(), "rb")};
  if (file == nullptr) {
    return mistake("cannot open " + quoted(path) + ": " + std::strerror(errno),
                   "check the path and who may read it");
  }
  return file;
}

Parsed<std::string> read_all(const OpenFile& file, const std::string& path, std::size_t bytes_max) {
  std::string content;
  constexpr std::size_t kPiece = 64U << 10U;
  while (content.size() <= bytes_max) {
    const std::size_t before = content.size();
    content.resize(before + kPiece);
    const std::size_t got = std::fread(content.data() + before, 1, kPiece, file.get());
    content.resize(before + got);
    if (got < kPiece) break;
  }
  if (std::ferror(file.get()) != 0) {
    return mistake("cannot read " + quoted(path) + ": " + std::strerror(errno),
                   "a file is needed, not a folder");
  }
  if (content.size() > bytes_max) {
    return mistake(quoted(path) + " is larger than " + std::to_string(bytes_max) + " bytes",
                   "is it the right file?");
  }
  return content;
}

}  // namespace

Parsed<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  const Parsed<OpenFile> file = open_file(path);
  if (!file) return tl::unexpected(file.error());
  return read_all(*file, path, bytes_max);
}

Parsed<std::string> read_trusted_file(const std::string& path, std::size_t bytes_max) {
  const Parsed<OpenFile> file = open_file(path);
  if (!file) return tl::unexpected(file.error());
  struct stat status{};
  if (::fstat(::fileno(file->get()), &status) == 0) {
    Parsed<void> trusted = refuse_if_world_writable(path, status.st_mode);
    if (!trusted) return tl::unexpected(std::move(trusted.error()));
  }
  return read_all(*file, path, bytes_max);
}

Parsed<void> refuse_if_world_writable(const std::string& path, mode_t mode) {
  if (!S_ISREG(mode) || (mode & S_IWOTH) == 0) return {};
  return mistake(path + " can be changed by every user of this machine", "chmod o-w " + path);
}

std::optional<Diagnostic> warn_if_world_readable(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || (status.st_mode & S_IROTH) == 0) return std::nullopt;
  return Diagnostic{"the secret in " + path + " can be read by every user of this machine",
                    "chmod o-r " + path};
}

}  // namespace sluice
