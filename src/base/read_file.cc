#include "base/read_file.h"

#include "base/text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace sluice {
namespace {

struct Close {
  void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
};

}  // namespace

Parsed<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  const std::unique_ptr<std::FILE, Close> file{std::fopen(path.c_str(), "rb")};
  if (file == nullptr) {
    return mistake("cannot open " + quoted(path) + ": " + std::strerror(errno),
                   "check the path and who may read it");
  }
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

}  // namespace sluice
