// A folder of its own for a test that needs files; it vanishes with the object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <sys/stat.h>

namespace sluice::testing {

class TempFolder {
 public:
  // Whatever the mask of who runs the tests: files that everybody may change are not believed.
  TempFolder() : path_((std::filesystem::temp_directory_path() / "sluice-XXXXXX").string()) {
    ::umask(022);
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error{"no temporary folder"};
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace sluice::testing
