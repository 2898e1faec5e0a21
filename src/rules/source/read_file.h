// Reading a file that decides what this program does: whole, of bounded size, and only if others
// could not have put anything into it.
#pragma once

#include <sluice/diagnostic.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::rules {

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

// Only regular files: a pipe would block, a device never end. A file that changes while it is read
// is read again, a few times; what comes back is what stood there at one moment, unless a writer
// hides its changes from the file's time.
[[nodiscard]] tl::expected<std::string, ReadFailure> read_file(const std::string& path,
                                                               const ReadLimits& limits);

// Names a text by its digest: 32 hexadecimal digits. Tells texts apart, keeps no secret.
[[nodiscard]] std::string digest_text(std::string_view text);

}  // namespace sluice::rules
