#include "rules/source/read_file.h"

#include "base/digest.h"
#include "base/file_descriptor.h"
#include "base/read_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <system_error>
#include <utility>

namespace sluice::rules {
namespace {

using Failed = tl::unexpected<ReadFailure>;

Failed failed(std::string message, std::string remedy) {
  return Failed{ReadFailure{.missing = false, .what = {std::move(message), std::move(remedy)}}};
}

std::string remedy_for(int error) {
  switch (error) {
    case ENOENT: return "create it, or name another file";
    case EACCES: return "allow this program's user to read it and to enter the folders above it";
    case ELOOP: return "name the file itself, not a symbolic link";
    default: return "check the file and its disk";
  }
}

Failed system_failed(const std::string& path, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  return Failed{ReadFailure{
      .missing = missing,
      .what = {fmt::format("cannot read {}: {}", path, std::generic_category().message(error)),
               remedy_for(missing ? ENOENT : error)}}};
}

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Failed too_large(const std::string& path, const ReadLimits& limits) {
  return failed(fmt::format("{} is larger than {} bytes", path, limits.bytes_max),
                "remove what it does not need, or raise the limit on its size");
}

std::optional<Failed> objection(const std::string& path, const struct stat& file,
                                const ReadLimits& limits) {
  if (!S_ISREG(file.st_mode)) {
    return failed(fmt::format("{} is {}, not a file", path, kind_of(file.st_mode)),
                  "name a regular file");
  }
  if (!limits.world_writable) {
    Parsed<void> trusted = refuse_if_world_writable(path, file.st_mode);
    if (!trusted) return Failed{ReadFailure{.missing = false, .what = std::move(trusted.error())}};
  }
  if (static_cast<std::size_t>(file.st_size) > limits.bytes_max) return too_large(path, limits);
  return std::nullopt;
}

bool same_moment(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// Reads one byte more than allowed, to notice a file that has grown since its size was asked for.
tl::expected<std::string, int> read_all(int file, std::size_t bytes_max) {
  constexpr std::size_t kChunk = std::size_t{64} << 10U;
  std::string text;
  while (text.size() <= bytes_max) {
    const std::size_t had = text.size();
    text.resize(had + std::min(kChunk, bytes_max + 1 - had));
    const ssize_t got = ::read(file, text.data() + had, text.size() - had);
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) break;
    if (got < 0 && errno != EINTR) return tl::unexpected(errno);
  }
  return text;
}

struct Attempt {
  std::string text;
  bool whole = false;  // nobody wrote meanwhile
};

tl::expected<Attempt, ReadFailure> try_to_read(const std::string& path, const ReadLimits& limits) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const FileDescriptor file{::open(path.c_str(), limits.follow_link ? flags : flags | O_NOFOLLOW)};
  struct stat before{};
  if (!file || ::fstat(file.get(), &before) != 0) return system_failed(path, errno);
  if (std::optional<Failed> refused = objection(path, before, limits)) return *std::move(refused);

  auto text = read_all(file.get(), limits.bytes_max);
  if (!text) return system_failed(path, text.error());
  if (text->size() > limits.bytes_max) return too_large(path, limits);

  struct stat after{};
  if (::fstat(file.get(), &after) != 0) return system_failed(path, errno);
  const bool whole = same_moment(before.st_mtim, after.st_mtim) &&
                     text->size() == static_cast<std::size_t>(after.st_size);
  return Attempt{.text = *std::move(text), .whole = whole};
}

}  // namespace

tl::expected<std::string, ReadFailure> read_file(const std::string& path,
                                                 const ReadLimits& limits) {
  constexpr int kAttempts = 5;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto read = try_to_read(path, limits);
    if (!read) return tl::unexpected(std::move(read.error()));
    if (read->whole) return std::move(read->text);
  }
  return failed(fmt::format("{} keeps changing while it is read", path),
                "write the new content to another file and rename that over it");
}

std::string digest_text(std::string_view text) {
  SipHash13 hash{DigestSecret{}};
  hash.append(text);
  const Digest digest = hash.finish();
  return fmt::format("{:016x}{:016x}", digest.high, digest.low);
}

}  // namespace sluice::rules
