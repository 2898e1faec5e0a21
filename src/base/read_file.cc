#include "base/read_file.h"

#include "base/file_descriptor.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace sluice {
namespace {

using Failed = tl::unexpected<ReadFailure>;

Failed failed(std::string message, std::string remedy) {
  return Failed{ReadFailure{.missing = false, .what = {std::move(message), std::move(remedy)}}};
}

std::string remedy_for(int error) {
  switch (error) {
    case ENOENT: return "create it, or name another file";
    case EACCES: return "allow this program's user to read it and to enter the folders above it";
    case EISDIR: return "name a file, not a folder";
    case ELOOP: return "name the file itself, not a symbolic link";
    default: return "check the file and its disk";
  }
}

Failed system_failed(const std::string& path, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  return Failed{ReadFailure{.missing = missing,
                            .what = {fmt::format("cannot read {}: {}", quoted(path),
                                                 std::generic_category().message(error)),
                                     remedy_for(missing ? ENOENT : error)}}};
}

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Failed too_large(const std::string& path, std::size_t bytes_max) {
  return failed(fmt::format("{} is larger than {} bytes", quoted(path), bytes_max),
                "name the right file, or remove what it does not need");
}

std::optional<Failed> distrust(const std::string& path, const struct stat& file) {
  if (!S_ISREG(file.st_mode) || (file.st_mode & S_IWOTH) == 0) return std::nullopt;
  return failed(path + " can be changed by every user of this machine", "chmod o-w " + path);
}

// Reads one byte more than allowed, to notice a file that has grown since its size was asked for.
tl::expected<std::string, ReadFailure> read_all(int file, const std::string& path,
                                                std::size_t bytes_max) {
  constexpr std::size_t kChunk = std::size_t{64} << 10U;
  std::string text;
  while (text.size() <= bytes_max) {
    const std::size_t had = text.size();
    text.resize(had + std::min(kChunk, bytes_max + 1 - had));
    const ssize_t got = ::read(file, text.data() + had, text.size() - had);
    const int error = errno;
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) break;
    if (got < 0 && error != EINTR) return system_failed(path, error);
  }
  if (text.size() > bytes_max) return too_large(path, bytes_max);
  return text;
}

Parsed<std::string> without_kind(tl::expected<std::string, ReadFailure> read) {
  if (!read) return tl::unexpected(std::move(read.error().what));
  return *std::move(read);
}

tl::expected<std::string, ReadFailure> read_any(const std::string& path, std::size_t bytes_max,
                                                bool trusts_all) {
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)};
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) return system_failed(path, errno);
  if (!trusts_all) {
    if (std::optional<Failed> refused = distrust(path, status)) return *std::move(refused);
  }
  return read_all(file.get(), path, bytes_max);
}

// ---- files that others may write --------------------------------------------------------------

std::optional<Failed> objection(const std::string& path, const struct stat& file,
                                const ReadLimits& limits) {
  if (!S_ISREG(file.st_mode)) {
    return failed(fmt::format("{} is {}, not a file", quoted(path), kind_of(file.st_mode)),
                  "name a regular file");
  }
  if (!limits.world_writable) {
    if (std::optional<Failed> refused = distrust(path, file)) return refused;
  }
  if (static_cast<std::size_t>(file.st_size) > limits.bytes_max) {
    return too_large(path, limits.bytes_max);
  }
  return std::nullopt;
}

bool same_moment(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

struct Attempt {
  std::string text;
  bool whole = false;  // the file did not change meanwhile
};

tl::expected<Attempt, ReadFailure> try_to_read(const std::string& path, const ReadLimits& limits) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const FileDescriptor file{::open(path.c_str(), limits.follow_link ? flags : flags | O_NOFOLLOW)};
  struct stat before{};
  if (!file || ::fstat(file.get(), &before) != 0) return system_failed(path, errno);
  if (std::optional<Failed> refused = objection(path, before, limits)) return *std::move(refused);

  auto text = read_all(file.get(), path, limits.bytes_max);
  if (!text) return tl::unexpected(std::move(text.error()));

  struct stat after{};
  if (::fstat(file.get(), &after) != 0) return system_failed(path, errno);
  const bool whole = same_moment(before.st_mtim, after.st_mtim) &&
                     text->size() == static_cast<std::size_t>(after.st_size);
  return Attempt{.text = *std::move(text), .whole = whole};
}

}  // namespace

Parsed<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  return without_kind(read_any(path, bytes_max, true));
}

Parsed<std::string> read_trusted_file(const std::string& path, std::size_t bytes_max) {
  return without_kind(read_any(path, bytes_max, false));
}

tl::expected<std::string, ReadFailure> read_settled_file(const std::string& path,
                                                         const ReadLimits& limits) {
  constexpr int kAttempts = 5;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto read = try_to_read(path, limits);
    if (!read) return tl::unexpected(std::move(read.error()));
    if (read->whole) return std::move(read->text);
  }
  return failed(fmt::format("{} keeps changing while it is read", quoted(path)),
                "write the new content to another file and rename that over it");
}

std::optional<Diagnostic> warn_if_world_readable(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || (status.st_mode & S_IROTH) == 0) return std::nullopt;
  return Diagnostic{"the secret in " + path + " can be read by every user of this machine",
                    "chmod o-r " + path};
}

}  // namespace sluice
