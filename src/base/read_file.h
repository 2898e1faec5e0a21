// A file that a person named, as a whole and of bounded size. For the control road: it blocks and
// allocates.
#pragma once

#include <sluice/diagnostic.h>

#include <cstddef>
#include <optional>
#include <string>
#include <sys/types.h>

namespace sluice {

// Whatever has content: also a pipe, or a file of the kernel's.
[[nodiscard]] Parsed<std::string> read_file(const std::string& path, std::size_t bytes_max);

// A file that grants access: rejected if every user of this machine may write it. A file that is
// not regular has no content to protect.
[[nodiscard]] Parsed<std::string> read_trusted_file(const std::string& path, std::size_t bytes_max);

struct ReadLimits {
  std::size_t bytes_max = std::size_t{16} << 20U;
  // File systems without permissions show every file as writable by everybody.
  bool world_writable = false;  // read it even so
  bool follow_link = true;      // if the last part of the path is a symbolic link
};

// Why a file cannot be read, apart from the words for it.
struct ReadFailure {
  bool missing = false;  // there is no such file
  Diagnostic what;
};

// A file that another process may be writing, for programs that read it again and again. Only
// regular files: a pipe would block, a device never end. A file that changes while it is read is
// read again, a few times; the result is its content at one moment, unless a writer hides its
// changes from the file's time.
[[nodiscard]] tl::expected<std::string, ReadFailure> read_settled_file(const std::string& path,
                                                                       const ReadLimits& limits);

// What to tell about a file with a secret that every user of this machine may read; nothing where
// all is well, or there is no such file.
[[nodiscard]] std::optional<Diagnostic> warn_if_world_readable(const std::string& path);

}  // namespace sluice
