#include "cli/file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

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

}  // namespace sluice::cli
